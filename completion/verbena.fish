# SPDX-License-Identifier: BSD-2-Clause
# Completion of the verbena command for fish: "verbena complete" prints what can come next.

function __verbena_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l value (string replace -r '^--[^=]*=' '' -- $current)
    set -l kept (string replace -r '^(--[^=]*=)?.*$' '$1' -- $current)
    set -l command $words[1]
    set -e words[1]
    for line in ($command complete -- $words $current 2> /dev/null)
        switch $line
            case ':files *'
                set -l suffix (string replace ':files ' '' -- $line)
                for path in (__fish_complete_path $value)
                    string match -qr -- "(/|\.$suffix)\$" (string split -f 1 \t -- $path); and echo $kept$path
                end
            case ':files'
                for path in (__fish_complete_path $value)
                    echo $kept$path
                end
            case ':directories'
                for path in (__fish_complete_directories $value)
                    echo $kept$path
                end
            case ':programs'
                for path in (__fish_complete_command)
                    echo $kept$path
                end
            case ':program *'
                set -l from (math 1 + (string replace ':program ' '' -- $line))
                set -l rest
                test $from -le (count $words); and set rest (string escape -- $words[$from..-1])
                complete -C (string join ' ' -- $rest $current)
            case '*'
                echo $line
        end
    end
end

complete -c verbena -f -a '(__verbena_complete)'
