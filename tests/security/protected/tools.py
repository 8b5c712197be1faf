"""Cases of tools_test.py.

file: the planted file, below the project, or with `home` below the home directory; content: its text, in which CANARY,
PROJECT and HOME are replaced; command: a shell command in the project; typed: what is typed when it waits; with: other
files, below the home directory; before: a command that prepares the project, when `file` is not yet there; program: the
tool, if it is not the first word.
"""

TOUCH = "touch CANARY\n"
RUBY = 'File.write("CANARY", "")\n'
PYTHON = 'open("CANARY", "w")\n'
LISP = '(open "CANARY" :direction :output :if-does-not-exist :create)\n'
SCHEME = '(call-with-output-file "CANARY" (lambda (port) (display 1 port)))\n'
EVIL = {"project/evil.sh": "#!/bin/sh\ntouch CANARY\n"}


def case(file, content, command, typed="\x04", **more):
    return {"file": file, "content": content, "command": command, "typed": typed, **more}


def home(file, content, command, typed="\x04", **more):
    return case(file, content, command, typed, home=True, **more)


SHELLS = [
    home(".bashrc", TOUCH, "bash", "exit\n"),
    home(".bash_profile", TOUCH, "bash -l", "exit\n"),
    home(".zshenv", TOUCH, "zsh -c true"),
    home(".zshrc", TOUCH, "zsh", "exit\n"),
    home(".kshrc", TOUCH, "ksh93", "exit\n"),
    home(".mkshrc", TOUCH, "mksh", "exit\n"),
    home(".tcshrc", TOUCH, "tcsh -c true"),
    home(".config/fish/config.fish", TOUCH, "fish -c true"),
    home(".yashrc", TOUCH, "yash", "exit\n"),
    home(".xonshrc", PYTHON, "xonsh", "exit\n"),
    home(".config/elvish/rc.elv", "e:touch CANARY\n", "elvish", "exit\n"),
]

DEBUGGERS = [
    case(".pdbrc", "!" + PYTHON, "python3 -m pdb x.py", "q\n", **{"with": {"project/x.py": "print(1)\n"}}),
    case(".perldb", "BEGIN { open F, '>', 'CANARY' }\n", "perl -d x.pl", "q\n",
         **{"with": {"project/x.pl": "print 1;\n"}}),
    case(".valgrindrc", "--log-file=CANARY\n", "valgrind true"),
    home(".valgrindrc", "--log-file=CANARY\n", "valgrind true"),
    case(".gdbinit", "shell touch CANARY\n", "gdb", "q\n"),
    home(".gdbinit", "shell touch CANARY\n", "gdb", "q\n"),
    home(".gdbearlyinit", "shell touch CANARY\n", "gdb", "q\n"),
    case("x-gdb.py", PYTHON, "gdb x", "q\n", before="cp /bin/true x"),
    case(".lldbinit", "platform shell touch CANARY\n", "lldb", "q\n"),
    home(".lldbinit", "platform shell touch CANARY\n", "lldb", "q\n"),
    case(".byebugrc", "display " + RUBY, "byebug x.rb", "q!\n", **{"with": {"project/x.rb": "puts 1\n"}}),
    home(".rdbgrc", "eval " + RUBY, "rdbg3.1 x.rb", "q!\n", **{"with": {"project/x.rb": "puts 1\n"}}),
    home(".rdbgrc.rb", RUBY, "rdbg3.1 x.rb", "q!\n", **{"with": {"project/x.rb": "puts 1\n"}}),
]

INTERPRETERS = [
    case("readline.py", PYTHON, "python3", "exit()\n"),
    case("rlcompleter.py", PYTHON, "python3", "exit()\n"),
    case("sitecustomize.py", PYTHON, "PYTHONPATH=. python3 -c 1", program="python3"),
    case("ipython_config.py", PYTHON, "ipython3", "exit\n"),
    home(".ipython/profile_default/startup/a.py", PYTHON, "ipython3", "exit\n"),
    case("jupyter_config.py", PYTHON, "jupyter-troubleshoot"),
    case("jupyter_config.py", PYTHON, "jupyter-migrate"),
    case(".irbrc", RUBY, "irb", "exit\n"),
    case("irb.rc", RUBY, "irb", "exit\n"),
    case("_irbrc", RUBY, "irb", "exit\n"),
    case("$irbrc", RUBY, "irb", "exit\n"),
    case(".pryrc", RUBY, "pry", "exit\n"),
    case(".Rprofile", 'file.create("CANARY")\n', "R --no-save", "q()\n"),
    case(".Renviron", "R_PROFILE_USER=PROJECT/evil.R\n", "R --no-save", "q()\n",
         **{"with": {"project/evil.R": 'file.create("CANARY")\n'}}),
    {"file": ".RData", "command": "R --no-save", "typed": "q()\n",
     "before": """Rscript -e '.First <- function() file.create("CANARY"); save(.First, file = ".RData")'"""},
    case(".user.ini", "auto_prepend_file=PROJECT/evil.txt\n",
         "REDIRECT_STATUS=1 REQUEST_METHOD=GET DOCUMENT_ROOT=PROJECT SCRIPT_FILENAME=PROJECT/x.php php-cgi",
         program="php-cgi",
         **{"with": {"project/evil.txt": '<?php touch("CANARY");\n', "project/x.php": "<?php echo 1;\n"}}),
    case("php.ini", "auto_prepend_file=PROJECT/evil.txt\n",
         "REDIRECT_STATUS=1 REQUEST_METHOD=GET SCRIPT_FILENAME=PROJECT/x.php php-cgi", program="php-cgi",
         **{"with": {"project/evil.txt": '<?php touch("CANARY");\n', "project/x.php": "<?php echo 1;\n"}}),
    case(".iex.exs", 'File.write!("CANARY", "")\n', "iex", "System.halt\n"),
    case(".erlang", 'os:cmd("touch CANARY").\n', "erl -noshell -s init stop"),
    home(".erlang", 'os:cmd("touch CANARY").\n', "erl -noshell -s init stop"),
    home(".tclshrc", "exec touch CANARY\n", "tclsh", "exit\n"),
    home(".expect.rc", "exec touch CANARY\n", "expect", "exit\n"),
    home(".guile", SCHEME, "guile", ",q\n"),
    case(".csirc", SCHEME, "csi", "(exit)\n"),
    home(".csirc", SCHEME, "csi", "(exit)\n"),
    case(".gambini", SCHEME, "gsi", ",q\n"),
    home(".gambini", SCHEME, "gsi", ",q\n"),
    home(".sbclrc", LISP, "sbcl", "(exit)\n"),
    home(".clisprc.lisp", LISP, "clisp", "(exit)\n"),
    home(".eclrc", LISP, "ecl", "(ext:quit)\n"),
    case(".calcinit", 'system("touch CANARY")\n', "calc", "quit\n"),
    home(".calcrc", 'system("touch CANARY")\n', "calc", "quit\n"),
    home(".gprc", 'read "HOME/evil.gp"\n', "gp", "\\q\n", **{"with": {"evil.gp": 'system("touch CANARY")\n'}}),
    case("maxima-init.mac", 'system("touch CANARY")$\n', "maxima", "quit();\n"),
    home(".maxima/maxima-init.mac", 'system("touch CANARY")$\n', "maxima", "quit();\n"),
    home(".config/swi-prolog/init.pl", ":- shell('touch CANARY').\n", "swipl", "halt.\n"),
    home(".gnuplot", 'system("touch CANARY")\n', "gnuplot", "exit\n"),
    case(".gnuplot", 'system("touch CANARY")\n', "gnuplot", "exit\n"),
    case(".ropeproject/config.py", "def set_prefs(prefs):\n    " + PYTHON,
         "python3 -c 'import rope.base.project; rope.base.project.Project(\".\")'", program="python3"),
]

EDITORS = [
    home(".vimrc", "call system('touch CANARY')\n", "vim x", ":q!\n"),
    case(".exrc", "call system('touch CANARY')\n", "vim x", ":q!\n", **{"with": {".vimrc": "set exrc\n"}}),
    case("Session.vim", "call system('touch CANARY')\n", "vim -S", ":q!\n"),
    home(".config/nvim/init.lua", "io.open('CANARY', 'w')\n", "nvim --headless +q"),
    case(".nvim.lua", "io.open('CANARY', 'w')\n", "nvim --headless +q",
         **{"with": {".config/nvim/init.lua": "vim.o.exrc = true\n"}}),
    home(".config/kak/kakrc", "nop %sh{touch CANARY}\n", "kak -ui dummy -e quit x"),
    case(".ctags.d/evil.ctags", "-o CANARY\n", "ctags x.c", **{"with": {"project/x.c": "int main;\n"}}),
    case("ctags.d/evil.ctags", "-o CANARY\n", "ctags x.c", **{"with": {"project/x.c": "int main;\n"}}),
    home(".lesskey", "#env\nLESSOPEN=|touch CANARY; cat %s\n", "less x", "q", **{"with": {"project/x": "1\n"}}),
    home(".tmux.conf", 'run-shell "touch CANARY"\n', "tmux -L names new-session", "exit\n"),
    home(".screenrc", "screen touch CANARY\n", "SCREENDIR=HOME/s screen sleep 1", before="mkdir -m 700 HOME/s",
         program="screen"),
]

REPOSITORIES = [
    case(".git/config", "[core]\nrepositoryformatversion = 0\nfsmonitor = PROJECT/evil.sh\n", "git status",
         before="git init -q", **{"with": EVIL}),
    case(".git/hooks/post-checkout", "#!/bin/sh\ntouch CANARY\n", "git checkout -q -b b",
         before="git init -q && git -c user.name=a -c user.email=a commit -q --allow-empty -m a"),
    case(".git/sequencer/todo", "exec touch CANARY\n", "git cherry-pick --continue",
         before="git init -q && git -c user.name=a -c user.email=a commit -q --allow-empty -m a && mkdir .git/sequencer "
                "&& git rev-parse HEAD >.git/sequencer/head"),
    case(".git/rebase-merge/git-rebase-todo", "exec touch CANARY\n", "git rebase --continue",
         before="git init -q && git config user.name a && git config user.email a && git commit -q --allow-empty -m a && "
                "git commit -q --allow-empty -m b && GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1"),
    case(".git/remotes/origin", "URL: ext::sh -c touch% CANARY\n", "git fetch origin", before="git init -q"),
    case(".git/branches/origin", "ext::sh -c touch% CANARY\n", "git fetch origin", before="git init -q"),
    case(".git/modules/x/config", "[core]\nworktree = ../../../x\nfsmonitor = PROJECT/evil.sh\n", "git status",
         before="git init -q m && git -C m -c user.name=a -c user.email=a commit -q --allow-empty -m a && git init -q && "
                "git -c protocol.file.allow=always submodule add -q ./m x; rm -rf m", **{"with": EVIL}),
    home(".gitconfig", "[core]\nfsmonitor = PROJECT/evil.sh\n", "git status", before="git init -q", **{"with": EVIL}),
    case(".hg/hgrc", "[hooks]\npre-status = touch CANARY\n", "hg status", before="hg init"),
    case("CVS/Root", ":ext;CVS_RSH=PROJECT/evil.sh:host:/r\n", "cvs status",
         **{"with": {**EVIL, "project/CVS/Entries": "/x/1.1/Thu Jan  1 00:00:00 1970//\n", "project/CVS/Repository": "r\n",
                     "project/x": "1\n"}}),
    home(".mrconfig", "[DEFAULT]\nlib = touch CANARY\n[HOME/project]\ncheckout = true\n", "mr status",
         before="git init -q"),
    home(".subversion/config", "[helpers]\ndiff-cmd = PROJECT/evil.sh\n", "svn diff w",
         before="svnadmin create r && svn co -q file://PROJECT/r w && touch w/a && svn add -q w/a && echo 1 >w/a",
         program="svn", **{"with": EVIL}),
    case(".gitreview", "[gerrit]\nhost=-oProxyCommand=PROJECT/evil.sh\nproject=x\n", "git-review -s", before="git init -q",
         **{"with": EVIL}),
]

OTHERS = [
    case(".envrc.local", TOUCH, "direnv export bash", before="echo source_env_if_exists .envrc.local >.envrc; "
         "direnv allow"),
    case(".envrc", TOUCH, "direnv export bash"),
    home(".rpmmacros", "%_dbpath %(touch CANARY; echo HOME/db)\n", "rpm -qa"),
    case(".ackrc", "--pager=PROJECT/evil.sh\n", "ack x", **{"with": {**EVIL, "project/x": "x\n"}}),
    home(".wgetrc", "logfile = CANARY\n", "wget -t 1 http://127.0.0.1:9/"),
    home(".curlrc", "output = CANARY\n", "curl file:///etc/hostname"),
    case("ansible.cfg", "[defaults]\ncallback_plugins = PROJECT/p\nstdout_callback = evil\n", "ansible localhost -m debug",
         **{"with": {"project/p/evil.py": PYTHON}}),
    case(".npmrc", "init-module=PROJECT/evil.js\n", "npm init", "\n",
         **{"with": {"project/evil.js": "require('fs').writeFileSync('CANARY', '')\n"}}),
    home(".npm-init.js", "require('fs').writeFileSync('CANARY', '')\n", "npm init", "\n"),
    case(".hotspotrc", "+PrintVMOptions\nOnOutOfMemoryError=\"touch CANARY\"\n", "java -version"),
]

CASES = [*SHELLS, *DEBUGGERS, *INTERPRETERS, *EDITORS, *REPOSITORIES, *OTHERS]
