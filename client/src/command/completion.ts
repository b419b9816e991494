import { type Command, choices, UsageError } from './options/command.ts';
import { printData } from './terminal/terminal.ts';

type Commands = Readonly<Record<string, Command>>;

/** The completions for one command. */
interface Completed {
  readonly name: string;
  readonly summary: string;
  readonly words: readonly string[];
  readonly takesFiles: boolean;
  readonly options: readonly string[];
}

/** An option that takes a value. If `choices` is empty, the option accepts any value. */
interface Valued {
  readonly command: string;
  readonly option: string;
  readonly choices: readonly string[];
  readonly isFile: boolean;
}

const shells: Readonly<
  Record<string, (commands: readonly Completed[], valued: readonly Valued[]) => string>
> = {
  bash,
  zsh,
  fish,
};

/** Returns the command that prints a shell's completion script, which is generated from the other commands' definitions. */
export function completionOf(others: Commands): Command {
  const completion: Command = {
    summary: 'print a completion script for your shell',
    help: `Usage: intake completion <bash|zsh|fish>

Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  intake completion bash > ~/.local/share/bash-completion/completions/intake
  intake completion zsh > "\${fpath[1]}/_intake"
  intake completion fish > ~/.config/fish/completions/intake.fish`,
    options: {},
    words: Object.keys(shells),
    async run(_values, [shell = '', ...rest]) {
      const script = Object.hasOwn(shells, shell) && rest.length === 0 ? shells[shell] : undefined;
      if (script === undefined) throw new UsageError('Use bash, zsh or fish. See intake completion --help.');
      const all = { ...others, completion };
      await printData(script(completedOf(all), valuedOf(all)).trimEnd());
      return 0;
    },
  };
  return completion;
}

function completedOf(commands: Commands): Completed[] {
  return Object.entries(commands).map(([name, { summary, words = [], takesFiles = false, options }]) => ({
    name,
    summary,
    words,
    takesFiles,
    options: [...Object.keys(options), 'help'].map((option) => `--${option}`),
  }));
}

function valuedOf(commands: Commands): Valued[] {
  return Object.entries(commands).flatMap(([command, { options }]) =>
    Object.entries(options)
      .filter(([, { type }]) => type === 'string')
      .map(([option]) => ({
        command,
        option: `--${option}`,
        choices: choices[option] ?? [],
        isFile: option === 'mapping' || option === 'file',
      })),
  );
}

function bash(commands: readonly Completed[], valued: readonly Valued[]): string {
  const values = valued.map(({ command, option, choices, isFile }) => {
    const found = isFile ? '_intake_files' : `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$cur"))`;
    return `    '${command} ${option}') ${found}; return ;;`;
  });
  const cases = commands.map(({ name, words, takesFiles, options }) => {
    const found = takesFiles ? '_intake_files' : `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"))`;
    return `    ${name}) options='${options.join(' ')}'; ${found} ;;`;
  });
  // The script reads names line by line, because they may contain spaces. It cannot use mapfile, which bash on macOS lacks.
  return `_intake_files() {
  local name
  while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$cur")
}
_intake() {
  local cur=\${COMP_WORDS[COMP_CWORD]} options=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${commands.map(({ name }) => name).join(' ')}' -- "$cur"))
    return
  fi
  case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD - 1]}" in
${values.join('\n')}
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$cur")); fi
}
complete -o filenames -F _intake intake
`;
}

function zsh(commands: readonly Completed[], valued: readonly Valued[]): string {
  const values = valued.map(({ command, option, choices, isFile }) => {
    const found = isFile ? '_files' : choices.length > 0 ? `compadd -- ${choices.join(' ')}` : ':';
    return `    '${command} ${option}') ${found}; return ;;`;
  });
  const cases = commands.map(({ name, words, takesFiles, options }) => {
    const found = takesFiles ? '_files' : words.length > 0 ? `compadd -- ${words.join(' ')}` : ':';
    return `    ${name}) if [[ $PREFIX == -* ]]; then compadd -- ${options.join(' ')}; else ${found}; fi ;;`;
  });
  return `#compdef intake
_intake() {
  if ((CURRENT == 2)); then
    local -a names=(
${commands.map(({ name, summary }) => `      '${name}:${summary}'`).join('\n')}
    )
    _describe command names
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
${values.join('\n')}
  esac
  case "$words[2]" in
${cases.join('\n')}
  esac
}
if [[ $funcstack[1] == _intake ]]; then _intake "$@"; else compdef _intake intake; fi
`;
}

function fish(commands: readonly Completed[], valued: readonly Valued[]): string {
  const lines = commands.flatMap(({ name, summary, words, takesFiles, options }) => {
    const within = `complete -c intake -n '__fish_seen_subcommand_from ${name}'`;
    const takesNone = options.filter(
      (option) => !valued.some((one) => one.command === name && one.option === option),
    );
    return [
      `complete -c intake -n __fish_use_subcommand -a ${name} -d '${summary}'`,
      ...(takesFiles ? [`${within} -F`] : []),
      ...(words.length > 0 ? [`${within} -a '${words.join(' ')}'`] : []),
      ...takesNone.map((option) => `${within} -l ${option.slice(2)}`),
    ];
  });
  const values = valued.map(({ command, option, choices, isFile }) => {
    const found = isFile ? '-r -F' : choices.length > 0 ? `-x -a '${choices.join(' ')}'` : '-x';
    return `complete -c intake -n '__fish_seen_subcommand_from ${command}' -l ${option.slice(2)} ${found}`;
  });
  return `${['complete -c intake -f', ...lines, ...values].join('\n')}\n`;
}
