#compdef pi-lcm
# Completions of pi-lcm for zsh: source <(pi-lcm completions zsh), or as a file _pi-lcm in $fpath
_pi_lcm() {
  local -a commands
  commands=(
@COMMANDS@
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
@CASES@
  esac
}
compdef _pi_lcm pi-lcm
