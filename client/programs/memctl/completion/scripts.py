"""The completion scripts of the shells.

Each passes the typed words to `memctl completion words` and shows the lines of its output: a word, a tab and its
meaning, or `:file` and `:folder` where the shell is to complete paths.
"""

SCRIPTS = {
    "bash": r"""# Completion of memctl for bash: source <(memctl completion bash)
_memctl() {
    local cur=${COMP_WORDS[COMP_CWORD]} word about path line=""
    [[ $cur == "=" ]] && cur=""
    for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do
        [[ $word == "=" ]] || line+=$word$'\n'
    done
    COMPREPLY=()
    while IFS=$'\t' read -r word about; do
        case $word in
            :file | :folder)
                compopt -o filenames
                while IFS= read -r path; do
                    COMPREPLY+=("$path")
                done < <(compgen "$([[ $word == :file ]] && echo -f || echo -d)" -- "$cur")
                ;;
            *) COMPREPLY+=("$word") ;;
        esac
    done < <("${COMP_WORDS[0]}" completion words "$line$cur" 2>/dev/null)
}
complete -F _memctl memctl""",
    "zsh": r"""#compdef memctl
# Completion of memctl for zsh: memctl completion zsh > a file _memctl in a folder of $fpath
_memctl() {
    local word about
    local -a found
    while IFS=$'\t' read -r word about; do
        case $word in
            :file) _files ;;
            :folder) _files -/ ;;
            *) found+=("${word//:/\\:}${about:+:$about}") ;;
        esac
    done < <("${words[1]}" completion words "${(F)words[1,CURRENT-1]}"$'\n'"$PREFIX" 2>/dev/null)
    (( $#found )) && _describe -V memctl found
}
if [[ $funcstack[1] == _memctl ]]; then
    _memctl "$@"
else
    compdef _memctl memctl
fi""",
    "fish": r"""# Completion of memctl for fish: memctl completion fish > ~/.config/fish/completions/memctl.fish
function __memctl_words
    set -l typed (commandline -opc)
    set -l cur (commandline -ct)
    set -l before (string join \n -- $typed | string collect)
    for line in ($typed[1] completion words "$before"\n"$cur" 2>/dev/null)
        switch $line
            case :file
                __fish_complete_path "$cur"
            case :folder
                __fish_complete_directories "$cur"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c memctl -f -k -a '(__memctl_words)'""",
}
