#compdef rlhost
# Completion of rlhost in zsh. For this shell: source <(rlhost completion zsh)
# For all: rlhost completion zsh >"${fpath[1]}/_rlhost"
_rlhost() {
  local -a found
  found=("${(@f)$(COMP_LINE="${(j: :)words[1,CURRENT]}" "${words[1]}" 2>/dev/null)}")
  compset -P '*='
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [[ "${funcstack[1]}" == _rlhost ]]; then _rlhost "$@"; else compdef _rlhost rlhost; fi
