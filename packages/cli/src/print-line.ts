/** Prints a line of what a service said: no name in it reaches the terminal as a command. */
export function printLine(line: string): void {
  console.log(showControls(line))
}

/** Replaces characters that terminals take for commands, or for a change of direction. */
export function showControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '\ufffd')
}

/** The same of a text that may have several lines, on the other stream. */
export function printProblem(text: string): void {
  console.error(text.split('\n').map(showControls).join('\n'))
}
