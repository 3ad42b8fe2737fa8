# Completion of rlhost in bash. For this shell: source <(rlhost completion bash)
# For all: rlhost completion bash >~/.local/share/bash-completion/completions/rlhost
_rlhost() {
  mapfile -t COMPREPLY < <(COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" "$1" 2>/dev/null)
}
complete -o default -F _rlhost rlhost
