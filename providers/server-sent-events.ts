/** The data of each event of a whole event stream, in order. Other fields and comments are passed over. */
export function readEvents(text: string): readonly string[] {
  const events: string[] = [];
  let lines: string[] = [];
  // The empty line at the end closes an event that the server left open; cut JSON is found by its reader.
  for (const line of [...text.split(/\r\n|\n|\r/), '']) {
    if (line === '') {
      if (lines.length > 0) events.push(lines.join('\n'));
      lines = [];
      continue;
    }
    const value = /^data(?:: ?(.*))?$/s.exec(line);
    if (value !== null) lines.push(value[1] ?? '');
  }
  return events;
}
