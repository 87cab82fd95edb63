import { SetupError } from '@tollbase/server/base/setup-error'

/** The output of the demo, which knows the current step. */
export type Screen = {
  readonly title: (text: string) => void
  readonly step: (title: string) => void
  readonly say: (text: string) => void
  /** Names and values below each other. */
  readonly facts: (pairs: readonly (readonly [string, string])[]) => void
  readonly table: (columns: readonly string[], rows: readonly (readonly unknown[])[]) => void
  /** Prints a tick where the condition holds, else ends the demo. */
  readonly check: (holds: boolean, text: string) => void
  readonly note: (text: string) => void
  readonly gap: () => void
  readonly failed: (reason: string) => void
}

/** A promise of the service that did not hold. */
export class StepFailure extends Error {
  override readonly name = 'StepFailure'
}

/** Describes what ended the demo: in one line where it is a step or the place it runs at, with its stack elsewhere. */
export function describeFailure(error: unknown): string {
  if (error instanceof StepFailure || error instanceof SetupError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

type Style = 'bold' | 'dim' | 'green' | 'red' | 'cyan'

const codes: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, cyan: 36 }
const indent = '   '
const cellWidthMax = 30

export function openScreen(steps: number): Screen {
  const coloured = process.stdout.isTTY === true && (process.env.NO_COLOR ?? '') === ''
  const paint = (style: Style, text: string) =>
    coloured ? `\x1b[${codes[style]}m${text}\x1b[0m` : text
  const line = (text = '') => process.stdout.write(`${text}\n`)
  let number = 0
  let current = 'Before the first step'
  return {
    title: (text) => line(paint('bold', text)),
    step: (title) => {
      number += 1
      current = `Step ${number} of ${steps}: ${title}`
      line(`\n${paint('cyan', `${String(number).padStart(2)}/${steps}`)} ${paint('bold', title)}`)
    },
    say: (text) => line(`${indent}${text}`),
    facts: (pairs) => {
      const width = computeWidth(pairs.map(([name]) => name))
      for (const [name, value] of pairs)
        line(`${indent}${paint('dim', name.padEnd(width))}  ${value}`)
    },
    table: (columns, rows) => {
      const [head = '', ...body] = formatTable(columns, rows)
      line(`${indent}${paint('dim', head)}`)
      for (const text of body) line(`${indent}${text}`)
    },
    check: (holds, text) => {
      if (!holds) throw new StepFailure(`this did not hold: ${text}`)
      line(`${indent}${paint('green', '✓')} ${text}`)
    },
    note: (text) => line(`${indent}${paint('dim', text)}`),
    gap: () => line(),
    failed: (reason) => line(`\n${paint('red', `✗ ${current}`)}\n${indent}${reason}`),
  }
}

/** Formats the head and the rows; numbers are aligned right, everything else left. */
export function formatTable(
  columns: readonly string[],
  rows: readonly (readonly unknown[])[],
): string[] {
  const texts = rows.map((row) => columns.map((_, at) => cellText(row[at])))
  const widths = columns.map((name, at) =>
    computeWidth([name, ...texts.map((row) => row[at] ?? '')]),
  )
  const isRight = columns.map((_, at) =>
    rows.every((row) => typeof row[at] === 'number' || /^(\$.*)?$/.test(String(row[at] ?? ''))),
  )
  return [columns, ...texts].map((row) =>
    row
      .map((text, at) => padded(text, widths[at] ?? 0, isRight[at] === true))
      .join('  ')
      .trimEnd(),
  )
}

export function formatCount(value: number | bigint): string {
  return value.toLocaleString('en-US')
}

export function formatSeconds(sinceMs: number): string {
  return `${((Date.now() - sinceMs) / 1000).toFixed(1)} s`
}

function cellText(value: unknown): string {
  const text = typeof value === 'number' ? formatCount(value) : String(value ?? '')
  const signs = [...text]
  return signs.length > cellWidthMax ? `${signs.slice(0, cellWidthMax - 1).join('')}…` : text
}

/** Counts characters, not code units: names of places hold all kinds. */
function computeWidth(texts: readonly string[]): number {
  return Math.max(...texts.map((text) => [...text].length), 0)
}

function padded(text: string, width: number, isRight: boolean): string {
  const gap = ' '.repeat(Math.max(width - [...text].length, 0))
  return isRight ? `${gap}${text}` : `${text}${gap}`
}
