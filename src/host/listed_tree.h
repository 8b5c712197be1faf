// The directories of a workspace while it is searched: listed now, or as an index knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/search_index.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::host {

class ListedTree {
 public:
  /// What decides which names are kept. Must depend on the path and the name alone: what is kept for a directory counts
  /// as long as it has this path and does not change itself.
  struct Rules {
    std::function<bool(const std::string& directory, std::string_view name)> file;       ///< also for links
    std::function<bool(const std::string& directory, std::string_view name)> directory;  ///< sets kMayMatter
    bool all_links = false;
  };

  /// `root` must outlive this. `old`: an index that was made with the same rules; its entries are verified.
  /// `settled_after`: nanoseconds without a change, before an entry is trusted.
  ListedTree(const sys::RootDir& root, std::optional<SearchIndex> old, Rules rules, std::int64_t settled_after);

  [[nodiscard]] std::size_t size() const { return now_.directories.size(); }
  [[nodiscard]] const SearchIndex::Directory& at(std::uint32_t number) const { return now_.directories[number]; }
  [[nodiscard]] SearchIndex::Name& nameAt(std::uint32_t number) { return now_.names[number]; }
  [[nodiscard]] std::string_view view(SearchIndex::Text text) const { return now_.view(text); }
  /// The path of a directory relative to the workspace; valid until the next call.
  const std::string& pathOf(std::uint32_t number);

  /// Fills a directory from the index, if it did not change. False: it has to be listed.
  bool restore(std::uint32_t number, const std::string& path);
  /// Lists an open directory. `spend` is called for each entry; false ends the listing, with E2BIG. `unknown` is called
  /// with an entry whose type is unknown and its errno. Returns 0 or an errno; then nothing of the directory is kept.
  int list(std::uint32_t number, sys::Fd fd, const std::string& path, const std::function<bool()>& spend,
           const std::function<void(const std::string& path, int error)>& unknown);

  /// Looks for all names of these files from now on; entries of an index that did not are not used.
  void track(std::vector<std::uint64_t> inodes);
  [[nodiscard]] bool tracks(std::uint64_t inode) const;

  /// How many directories were listed, and of these, how many are trusted.
  [[nodiscard]] std::size_t listed() const { return listed_; }
  [[nodiscard]] std::size_t learned() const { return learned_; }
  /// Whether a file's content may be remembered in this state.
  [[nodiscard]] bool isSettled(const FileState& state) const;
  /// The state of a file of this workspace's file system; nullopt: it has none, or is on another one.
  [[nodiscard]] std::optional<FileState> stateOf(const std::string& path) const;

  SearchIndex take() { return std::move(now_); }

 private:
  struct Place {
    std::uint32_t parent = SearchIndex::kNone, old = SearchIndex::kNone;
  };
  struct Entry {
    std::string name;
    std::string target;
    std::uint64_t inode = 0;
    unsigned char type = 0;
    bool kept = false, tracked = false;
  };
  Entry examine(int directory, const std::string& path, std::string_view name, std::uint64_t inode,
                unsigned char type) const;
  void keep(std::uint32_t number, const std::vector<Entry>& entries);

  const sys::RootDir& root_;
  std::optional<SearchIndex> old_;
  SearchIndex now_;
  std::vector<Place> places_;  ///< of the directories
  Rules rules_;
  std::int64_t settled_after_;
  std::uint64_t mount_ = 0;
  std::uint64_t device_ = 0;
  bool reliable_ = false;
  std::size_t listed_ = 0, learned_ = 0;
  std::uint32_t above_ = SearchIndex::kNone;  ///< the directory of above_path_, which ends with a `/`
  std::string path_, above_path_;
};

}  // namespace caisson::host
