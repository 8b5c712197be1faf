"""What files contain: a canary, and what makes a file a secret by its content."""
import random

JSON = ("json",)
COLON = ("yaml", "yml")
EQUALS = ("toml", "ini", "cfg", "conf", "properties", "env")
SCRIPTS = ("sh", "bash", "zsh", "fish", "ps1", "bat", "cmd", "py", "rb", "php", "pl", "lua", "r", "js", "mjs", "cjs", "ts", "mts", "cts",
           "jsx", "tsx", "vue", "svelte", "go", "swift", "kt", "dart", "ex", "exs", "groovy", "gradle", "html", "htm", "md", "mdx",
           "rst", "adoc", "mk", "ipynb", "sql")
CONFIGURATIONS = ("json", "jsonc", "json5", "yaml", "yml", "toml", "ini", "cfg", "cnf", "conf", "config", "properties", "xml", "plist",
                  "tf", "hcl", "env", "hocon", "props", "settings", "kdl", "nix", "edn", "rc", "neon", "dhall", "cue", "jsonnet",
                  "libsonnet", "txt", "text", "log", "http", "rest", "curl")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

# Which kinds of content each rule of the catalogue hides. "large": a token, and more than 256 KiB.
HIDES = {"beginning": {"private_key", "token", "random_password"}, "script": {"token", "url_password"}}
HIDES["keys"] = HIDES["beginning"] | {"large"}
HIDES["settings"] = HIDES["keys"] | {"weak_password", "url_password"}
HIDES["settings, or one value"] = HIDES["settings"] | {"one_word"}
HIDES["unless public"] = HIDES["settings, or one value"] | {"plain", "placeholder"}


def letters(pick: random.Random, count):
    return "".join(pick.choice(LETTERS) for _ in range(count))


def ending(name):
    return name.lower().rpartition(".")[2] if "." in name[1:] else ""


def kinds_for(name):
    """The kinds of content that a file of this name can have; settings only where the syntax is certain."""
    kinds = ["plain", "plain", "private_key", "token"]
    if ending(name) in JSON + COLON + EQUALS:
        kinds += ["weak_password", "random_password", "placeholder"]
    if ending(name) in EQUALS + COLON:
        kinds += ["url_password"]
    if ending(name) in ("token", "secret", "psk", "") or name.endswith(("_token", "_secret")):
        kinds += ["one_word"]
    if ending(name) in ("pem", "key", "crt", "cer"):
        kinds += ["certificate"]
    return kinds


def settings(name, canary, pairs):
    kind = ending(name)
    if kind in JSON:
        return "{\n" + "".join(f'  "{key}": "{value}",\n' for key, value in pairs) + f'  "note": "the {canary} of this file"\n}}\n'
    separator = ": " if kind in COLON else " = "
    quote = '"' if kind in ("toml", "yaml", "yml") else ""
    return f"# the {canary} of this file\n" + "".join(f"{key}{separator}{quote}{value}{quote}\n" for key, value in pairs)


def pem(pick, label, canary):
    lines = [letters(pick, 64) for _ in range(5)]
    lines.insert(3, canary + letters(pick, 40))
    return f"-----BEGIN {label}-----\n" + "\n".join(lines) + f"\n-----END {label}-----\n"


def text(pick: random.Random, kind, name, canary):
    if kind == "large":
        return text(pick, "token", name, canary) + "A line of a file that is data, because it is so large.\n" * 5500
    if kind == "one_word":
        return canary + "\n"
    if kind == "private_key":
        return pem(pick, pick.choice(["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY"]), canary)
    if kind == "certificate":
        return pem(pick, "CERTIFICATE", canary)
    pairs = {"token": [("colour", "blue"), ("service", "ghp_" + letters(pick, 36))],
             "weak_password": [("user", "app"), ("password", "rosebud7")],
             "random_password": [("user", "app"), ("password", letters(pick, 24) + "aB3")],
             "url_password": [("database", "postgres://app:rosebud7@db.example.org/app")],
             "placeholder": [("user", "app"), ("password", "changeme")]}.get(kind)
    if pairs:
        return settings(name, canary, pairs)
    return f"The first line of a file.\nHere {canary} is mentioned.\nThe last line of a file.\n"


def git_config(pick: random.Random, public, secret, submodule=False):
    """A configuration of git: one canary in a value that is shown, one in a value that is left out."""
    if submodule:
        return f'[submodule "{public}"]\n\tpath = lib\n\turl = https://user:{secret}@example.org/lib.git\n'
    leaks = [f'[remote "up"]\n\turl = https://{secret}@example.org/x.git\n',
             f'[remote "up"]\n\turl = https://user:{secret}@example.org/x.git\n',
             f'[remote "up"]\n\turl = https://example.org/x.git?token={secret}\n',
             f'[http]\n\textraHeader = "Authorization: Basic {secret}"\n',
             f'[http]\n\tproxy = http://a:{secret}@example.org\n',
             f'[credential]\n\thelper = "!echo {secret}"\n',
             f'[core]\n\tsshCommand = ssh -i {secret}\n',
             f'[thing]\n\tvalue = {secret}\n']
    return f'[remote "origin"]\n\turl = https://example.org/{public}.git\n' + pick.choice(leaks)
