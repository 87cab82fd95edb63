import { parseArgs } from 'node:util'
import { subjects } from './market.ts'

export type Scene = 'log' | 'market'

export type Options = {
  readonly from: number
  readonly seeds: number
  /** Per mille. */
  readonly audited: number
  readonly atOnce: number
  readonly chosen: readonly Scene[]
  readonly subject: string | undefined
}

export const usage = `usage: npm run simulate -- [options]
  --from <seed>          the first seed (1)
  --seeds <number>       how many seeds (50)
  --only log|market      one of the two scenes; both when not given
  --with <subjects>      subjects that each run of the market has, with commas between them:
                         ${subjects.join(', ').replace(/(.{60}\S*) /g, '$1\n                         ')}
  --audited <per mille>  the share of the market's runs that end with the product's own audit (1000)
  --at-once <number>     the runs that are under way together (4): each waits for the database half of its time`

const text = { type: 'string' } as const
const options = {
  ...{ from: text, seeds: text, only: text, with: text, audited: text, 'at-once': text },
  help: { type: 'boolean', short: 'h' },
} as const

/** Reads a command line; undefined where it cannot be understood. */
export function readOptions(args: readonly string[]): Options | 'help' | undefined {
  const values = parseValues(args)
  if (values === undefined) return undefined
  if (values.help === true) return 'help'
  const { from = '1', seeds = '50', audited = '1000', 'at-once': atOnce = '4', only } = values
  const numbers = { from, seeds, audited, atOnce }
  const subject = values.with
  const isKnown = subject?.split(',').every((one) => subjects.some((known) => known === one))
  const areNumbers = Object.values(numbers).every((one) => /^\d{1,15}$/.test(one))
  const isScene = only === undefined || only === 'log' || only === 'market'
  if (isKnown === false || !areNumbers || !isScene || Number(atOnce) === 0) return undefined
  return {
    from: Number(from),
    seeds: Number(seeds),
    audited: Number(audited),
    atOnce: Number(atOnce),
    chosen: only === undefined ? ['log', 'market'] : [only],
    subject,
  }
}

function parseValues(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options }).values
  } catch {
    return undefined
  }
}
