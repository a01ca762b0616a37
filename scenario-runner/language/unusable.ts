/** A file that cannot be played: everything that is wrong with it, each with its line. */
export class UnusableFile extends Error {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(problems.map(({ line, message }) => `${file}:${line}: ${message}`).join('\n'));
    this.name = 'UnusableFile';
    this.file = file;
    this.problems = problems;
  }
}

export interface Problem {
  readonly line: number;
  readonly message: string;
}
