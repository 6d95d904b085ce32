# SPDX-License-Identifier: BSD-2-Clause
# Completion of the verbena command for bash: "verbena complete" prints what can come next.

_verbena_add()
{
    local line
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done
}

_verbena()
{
    local words=() at=() glued= value i word current kept=

    # Bash may cut words at '=': put them together, and remember where each began.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -gt 0 && ( $word == = || -n $glued ) ]]; then
            words[${#words[@]} - 1]+=$word
            glued=
            [[ $word == = ]] && glued=yes
        else
            words+=("$word")
            at+=("$i")
        fi
    done
    current=${words[${#words[@]} - 1]}
    [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && kept=${current%=*}=
    value=${current#"$kept"}
    [[ $current == --*=* ]] && value=${current#*=}

    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        case $word in
        ':files '*)
            compopt -o filenames
            _verbena_add < <(compgen -d -- "$value"; compgen -f -X "!*.${word#:files }" -- "$value")
            ;;
        :files) compopt -o filenames; _verbena_add < <(compgen -f -- "$value") ;;
        :directories) compopt -o filenames; _verbena_add < <(compgen -d -- "$value") ;;
        :programs) _verbena_add < <(compgen -c -- "$value") ;;
        ':program '*)
            i=${at[${word#:program }]:-$COMP_CWORD}
            if declare -F _command_offset > /dev/null; then
                _command_offset "$i"
            elif ((COMP_CWORD == i)); then
                _verbena_add < <(compgen -c -- "$value")
            else
                compopt -o filenames
                _verbena_add < <(compgen -f -- "$value")
            fi
            return
            ;;
        *)
            [[ $word == *= ]] && compopt -o nospace
            COMPREPLY+=("${word#"$kept"}")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2> /dev/null)
}
complete -F _verbena verbena
