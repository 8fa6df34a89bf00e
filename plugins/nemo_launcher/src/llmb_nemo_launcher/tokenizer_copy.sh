# Copy the files of a tokenizer from the publisher's repository into a folder. Keep complete files that already exist.
# Set by the caller: source, folder, files, is_complete. The last printed line is the cause of a failure.
set -eu
mkdir -p "$folder"
for file in "${files[@]}"; do
  if is_complete "$folder/$file"; then continue; fi
  if ! is_complete "$source/$file"; then
    echo "$source/$file is missing, empty or a pointer of Git LFS; copy the real file to $folder/$file" >&2
    exit 1
  fi
  cp -f -- "$source/$file" "$folder/$file.partial"
  mv -f -- "$folder/$file.partial" "$folder/$file"
done
