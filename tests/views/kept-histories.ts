import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getErrorKind } from './mismatch.ts'
import { shrink } from './shrink.ts'

/** Histories that found a bug: one file each, which every run of the tests replays. */
const keptFolder = fileURLToPath(new URL('./fixtures/', import.meta.url))

/** The program that follows the history: the engine of views in this process, or a whole service. */
export type Runner = 'engine' | 'service'

/** A history as it was drawn, and the function that prints it for the runner. */
export type Followed<Drawn, Printed> = {
  readonly runner: Runner
  readonly seed: number
  readonly drawn: Drawn
  readonly simpler: (one: Drawn) => Iterable<Drawn>
  /** Prints the history; throws where a simpler one has no meaning. */
  readonly print: (one: Drawn) => Printed
  /** Runs the history; rejects where something is wrong. */
  readonly run: (one: Printed) => Promise<void>
}

export type Bounds = {
  /** The number of simpler histories that may still be tried. */
  readonly tries: { left: number }
  readonly log?: (line: string) => void
  /** The folder for failing histories; the common one by default. */
  readonly folder?: string
}

/** Longer files are not shown in the error. */
const shownMax = 20_000

type Steps = { readonly steps: readonly unknown[] }

/** Follows a history. A failing one is simplified as far as the tries allow, and kept; then this rejects. */
export async function followHistory<Drawn extends Steps, Printed extends Steps>(
  { runner, seed, drawn, simpler, print, run }: Followed<Drawn, Printed>,
  { tries, log, folder = keptFolder }: Bounds,
): Promise<void> {
  const failure = await findFailure(run, print(drawn))
  if (failure === undefined) return
  log?.(failure.text.slice(0, 2_000))
  const startedAt = performance.now()
  const smallest = await shrink(drawn, {
    simpler,
    fails: async (one) => {
      const known = tryPrint(print, one)
      return known !== undefined && (await findFailure(run, known))?.kind === failure.kind
    },
    triesMax: tries.left,
    progress: (tried, { steps }) => {
      tries.left -= 1
      if (tried % 50 !== 0) return
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      log?.(`made simpler: ${tried} tries in ${seconds} s, ${steps.length} steps are left`)
    },
  })
  const history = print(smallest)
  const text = (await findFailure(run, history))?.text ?? failure.text
  const file = join(folder, runner, `seed-${seed}.json`)
  const content = fileText({ runner, found: `seed ${seed}`, wrong: text.split('\n') }, history)
  mkdirSync(join(folder, runner), { recursive: true })
  writeFileSync(file, content)
  const shown = content.length > shownMax ? text : content
  throw new Error(`seed ${seed}, followed again by npm run views -- --replay ${file}\n${shown}`)
}

type Failure = { readonly kind: string; readonly text: string }

async function findFailure<Printed>(
  run: (one: Printed) => Promise<void>,
  history: Printed,
): Promise<Failure | undefined> {
  try {
    await run(history)
    return undefined
  } catch (error) {
    return {
      kind: getErrorKind(error),
      text: error instanceof Error ? error.message : String(error),
    }
  }
}

function tryPrint<Drawn, Printed>(
  print: (one: Drawn) => Printed,
  drawn: Drawn,
): Printed | undefined {
  try {
    return print(drawn)
  } catch {
    return undefined
  }
}

/** Formats the file with one step a line. */
function fileText(head: object, history: Steps): string {
  const { steps, ...rest } = history
  const members = Object.entries({ ...head, ...rest }).map(
    ([name, value]) => `  "${name}": ${JSON.stringify(value)},\n`,
  )
  const lines = steps.map((step) => `    ${JSON.stringify(step)}`)
  return `{\n${members.join('')}  "steps": [\n${lines.join(',\n')}\n  ]\n}\n`
}

export type KeptHistory<Printed> = { readonly name: string; readonly history: Printed }

export function readKeptHistories<Printed>(
  runner: Runner,
  folder = keptFolder,
): readonly KeptHistory<Printed>[] {
  const names = readdirSync(join(folder, runner)).sort()
  return names.map((name) => ({ name, history: readHistory(join(folder, runner, name)) }))
}

/** A file that was written here is a history of its `runner`. */
export function readHistory<Printed>(file: string): Printed {
  return JSON.parse(readFileSync(file, 'utf8'))
}
