# Completions of pi-lcm for bash: source <(pi-lcm completions bash)
_pi_lcm() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words="" files="" name="" word
  local IFS=$' \t\n'
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
    -*) ;;
    *) case " @NAMES@ " in *" $word "*) name=$word; break ;; esac ;;
    esac
  done
  case $previous in
  --project) IFS=$'\n' COMPREPLY=($(compgen -d -- "$current")); return ;;
  --db) IFS=$'\n' COMPREPLY=($(compgen -f -- "$current")); return ;;
@CHOICES@
  --session) COMPREPLY=($(compgen -W "last" -- "$current")); return ;;
  completions) COMPREPLY=($(compgen -W "bash zsh fish" -- "$current")); return ;;
  esac
  case $name in
    "") words="@NAMES@ completions --project --db --session --color --json --help --version" ;;
@CASES@
  esac
  case $current in
  -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
  *) if [ -z "$name" ]; then COMPREPLY=($(compgen -W "$words" -- "$current"))
     elif [ -n "$files" ]; then IFS=$'\n' COMPREPLY=($(compgen -f -- "$current")); fi ;;
  esac
}
complete -o filenames -F _pi_lcm pi-lcm
