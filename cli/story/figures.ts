/** One figure of the story, read at print time from the source that is named. */
export interface Figure {
  readonly act: number;
  readonly figure: string;
  readonly expected: string;
  readonly actual: string;
  readonly source: string;
  readonly ok: boolean;
}

export interface FigureSheet {
  readonly figures: readonly Figure[];
  add(act: number, figure: Omit<Figure, 'act' | 'ok'> & { readonly ok?: boolean }): void;
}

export function createFigureSheet(onFigure: (figure: Figure) => void): FigureSheet {
  const figures: Figure[] = [];
  return {
    figures,
    add(act, { ok, ...rest }) {
      const figure = { act, ...rest, ok: ok ?? rest.expected === rest.actual };
      figures.push(figure);
      onFigure(figure);
    },
  };
}
