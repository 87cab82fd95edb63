import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { kindOf } from './mismatch.ts'
import { shrink } from './shrink.ts'

/** Histories that found a bug: one file each, which every run of the tests replays. */
const keptFolder = fileURLToPath(new URL('./fixtures/', import.meta.url))

/** What follows the history: the engine of views in this process, or a whole service. */
export type Runner = 'engine' | 'service'

/** A history as it was drawn, and how it is told to those who follow it. */
export type Followed<Drawn, Told> = {
  readonly runner: Runner
  readonly seed: number
  readonly drawn: Drawn
  readonly simpler: (one: Drawn) => Iterable<Drawn>
  /** Throws where the simpler one has no meaning. */
  readonly told: (one: Drawn) => Told
  /** Rejects where something is wrong. */
  readonly run: (one: Told) => Promise<void>
}

export type Bounds = {
  /** How many simpler histories may be tried; those that were are taken off. */
  readonly tries: { left: number }
  readonly log?: (line: string) => void
  /** Where what fails is kept; with the others when not given. */
  readonly folder?: string
}

/** Longer files are not shown beside. */
const shownMax = 20_000

type Steps = { readonly steps: readonly unknown[] }

/** Follows a history. One that fails is made as simple as the tries allow, and kept; then it rejects. */
export async function followed<Drawn extends Steps, Told extends Steps>(
  { runner, seed, drawn, simpler, told, run }: Followed<Drawn, Told>,
  { tries, log, folder = keptFolder }: Bounds,
): Promise<void> {
  const failure = await failureOf(run, told(drawn))
  if (failure === undefined) return
  log?.(failure.text.slice(0, 2_000))
  const startedAt = performance.now()
  const smallest = await shrink(drawn, {
    simpler,
    fails: async (one) => {
      const known = meaningOf(told, one)
      return known !== undefined && (await failureOf(run, known))?.kind === failure.kind
    },
    triesMax: tries.left,
    progress: (tried, { steps }) => {
      tries.left -= 1
      if (tried % 50 !== 0) return
      const seconds = Math.round((performance.now() - startedAt) / 1_000)
      log?.(`made simpler: ${tried} tries in ${seconds} s, ${steps.length} steps are left`)
    },
  })
  const history = told(smallest)
  const text = (await failureOf(run, history))?.text ?? failure.text
  const file = join(folder, runner, `seed-${seed}.json`)
  const content = fileText({ runner, found: `seed ${seed}`, wrong: text.split('\n') }, history)
  mkdirSync(join(folder, runner), { recursive: true })
  writeFileSync(file, content)
  const shown = content.length > shownMax ? text : content
  throw new Error(`seed ${seed}, followed again by npm run views -- --replay ${file}\n${shown}`)
}

type Failure = { readonly kind: string; readonly text: string }

async function failureOf<Told>(
  run: (one: Told) => Promise<void>,
  history: Told,
): Promise<Failure | undefined> {
  try {
    await run(history)
    return undefined
  } catch (error) {
    return { kind: kindOf(error), text: error instanceof Error ? error.message : String(error) }
  }
}

function meaningOf<Drawn, Told>(told: (one: Drawn) => Told, drawn: Drawn): Told | undefined {
  try {
    return told(drawn)
  } catch {
    return undefined
  }
}

/** One step a line. */
function fileText(head: object, history: Steps): string {
  const { steps, ...rest } = history
  const members = Object.entries({ ...head, ...rest }).map(
    ([name, value]) => `  "${name}": ${JSON.stringify(value)},\n`,
  )
  const lines = steps.map((step) => `    ${JSON.stringify(step)}`)
  return `{\n${members.join('')}  "steps": [\n${lines.join(',\n')}\n  ]\n}\n`
}

export type KeptHistory<Told> = { readonly name: string; readonly history: Told }

export function keptHistories<Told>(
  runner: Runner,
  folder = keptFolder,
): readonly KeptHistory<Told>[] {
  const names = readdirSync(join(folder, runner)).sort()
  return names.map((name) => ({ name, history: readHistory(join(folder, runner, name)) }))
}

/** A file that was written here is a history of its `runner`. */
export function readHistory<Told>(file: string): Told {
  return JSON.parse(readFileSync(file, 'utf8'))
}
