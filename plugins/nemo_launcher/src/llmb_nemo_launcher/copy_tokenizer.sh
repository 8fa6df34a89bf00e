# Set above: source, folder, files, whole. Copies the files of the publisher's repository that are a tokenizer into the
# folder, where a user can put them too. The last line that is printed tells what went wrong.
set -eu
mkdir -p "$folder"
for file in "${files[@]}"; do
  if whole "$folder/$file"; then continue; fi
  if ! whole "$source/$file"; then
    echo "$source/$file is missing, empty, or a pointer of Git LFS; put the real file at $folder/$file" >&2
    exit 1
  fi
  cp -f -- "$source/$file" "$folder/$file.partial"
  mv -f -- "$folder/$file.partial" "$folder/$file"
done
