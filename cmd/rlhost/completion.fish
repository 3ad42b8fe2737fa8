# Completion of rlhost in fish. For this shell: rlhost completion fish | source
# For all: rlhost completion fish >~/.config/fish/completions/rlhost.fish
function __rlhost_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    set -lx COMP_LINE (string join ' ' -- $before "$word")
    set -l found ($before[1] 2>/dev/null)
    if test -n "$found"
        set -l key (string match -r -- '^.*=' "$word")
        printf '%s\n' "$key"$found
    else
        __fish_complete_path "$word"
    end
end
complete -f -c rlhost -a '(__rlhost_complete)'
