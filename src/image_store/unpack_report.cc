#include "image_store/unpack_report.h"

#include "base/json_writer.h"

namespace caisson::image {

std::string UnpackReport::written() const {
  std::string text;
  for (const Note& note : notes_) {
    JsonWriter json;
    const std::string what = note.detail.empty() ? note.what : note.what + ": " + note.detail;
    json.beginObject().key("what").string(what).key("name").string(note.name).end();
    text += json.text() + "\n";
  }
  return text;
}

}  // namespace caisson::image
