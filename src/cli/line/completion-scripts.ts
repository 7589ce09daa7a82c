// Completion scripts for shells, which call "svc3 __complete". They contain no commands, so they never need an update.
// The one for bash supports version 3.2, which macOS has.

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const
type Shell = (typeof shells)[number]

const bash = `# bash completion for svc3 and orka3; put this into ~/.bashrc:  eval "$(svc3 completion bash)"
_svc3_complete() {
  local line="\${COMP_LINE:0:COMP_POINT}" words=() word rest trimmed index current cut value about
  # Bash splits words at ":" and "=" as well: what touches belongs together.
  rest="$line"
  for ((index = 0; index <= COMP_CWORD; index++)); do
    trimmed="\${rest#"\${rest%%[![:space:]]*}"}"
    word="\${COMP_WORDS[index]}"
    ((index == COMP_CWORD)) && word="$trimmed"
    if ((index > 0)) && [[ "$trimmed" == "$rest" ]]; then
      words[\${#words[@]}-1]="\${words[\${#words[@]}-1]}$word"
    else
      words[\${#words[@]}]="$word"
    fi
    rest="\${trimmed#"$word"}"
  done
  current="\${words[\${#words[@]}-1]}"
  # Only what follows the last such sign is replaced.
  cut=""
  [[ "$current" == *[:=]* ]] && cut="\${current%"\${current##*[:=]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r value about; do
    case "$value" in
      :files) while IFS= read -r value; do COMPREPLY[\${#COMPREPLY[@]}]="$value"; done < <(compgen -f -- "\${current#"$cut"}")
        compopt -o filenames 2>/dev/null ;;
      :folders) while IFS= read -r value; do COMPREPLY[\${#COMPREPLY[@]}]="$value"; done < <(compgen -d -- "\${current#"$cut"}")
        compopt -o filenames 2>/dev/null ;;
      :*) ;;
      *) COMPREPLY[\${#COMPREPLY[@]}]="\${value#"$cut"}" ;;
    esac
  done < <("\${words[0]/#\\~/$HOME}" __complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _svc3_complete svc3 orka3
`

const zsh = `#compdef svc3 orka3
# zsh completion for svc3 and orka3; put this into ~/.zshrc, after compinit:  eval "$(svc3 completion zsh)"
_svc3() {
  local line value
  local -a values texts
  for line in "\${(@f)$("\${(Q)words[1]/#\\~/$HOME}" __complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    value="\${line%%$'\\t'*}"
    case "$value" in
      :files) _files ;;
      :folders) _files -/ ;;
      :*|'') ;;
      *) values+=("$value")
        [[ -n "\${line#*$'\\t'}" ]] && texts+=("$value  -- \${line#*$'\\t'}") || texts+=("$value") ;;
    esac
  done
  (( \${#values} )) && compadd -l -d texts -a values
}
if [[ "\${funcstack[1]}" == "_svc3" ]]; then _svc3 "$@"; else compdef _svc3 svc3 orka3; fi
`

const fish = `# fish completion for svc3 and orka3; put this into ~/.config/fish/config.fish:  svc3 completion fish | source
function __svc3_complete
    set -l typed (commandline -opc) (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $typed[1])
    for line in ($program __complete -- $typed[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':folders'
                __fish_complete_directories (commandline -ct) ''
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c svc3 -f -a '(__svc3_complete)'
complete -c orka3 -f -a '(__svc3_complete)'
`

const powershell = `# PowerShell completion for svc3 and orka3; put this into $PROFILE:  svc3 completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName 'svc3', 'orka3' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $typed = @($commandAst.CommandElements | Where-Object { $_.Extent.StartOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    if ($wordToComplete -eq '') { $typed += '' }
    $program = $typed[0]
    $rest = @($typed | Select-Object -Skip 1)
    & $program '__complete' '--' @rest 2>$null | ForEach-Object {
        $value, $about = $_ -split "\`t", 2
        if ($value -eq ':files' -or $value -eq ':folders') {
            [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete)
        } elseif (-not $value.StartsWith(':')) {
            if (-not $about) { $about = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $about)
        }
    }
}
`

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish, powershell }

/** `isBare` omits the descriptions. */
export const completionScript = (shell: Shell, { isBare }: { readonly isBare: boolean }): string =>
  isBare ? scripts[shell].replace(/'?__complete'?/, '$& --no-descriptions') : scripts[shell]
