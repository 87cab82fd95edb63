import { isDeepStrictEqual } from 'node:util'
import { drive, type LoadResult, requireNoFailure, sendOnce } from './load.ts'
import { computeCpuMs } from './processes.ts'
import { type Comparison, interleave } from './rounds.ts'

/** A server under load. */
export type Side = {
  readonly port: number
  readonly pid: number
  readonly makeRequest: (at: number) => Buffer
  /** Parses the records in the text of an answer, in the form in which the sides' are compared. */
  readonly parseRecords: (text: string) => readonly unknown[]
}

export type Load = {
  readonly connections: number
  /** The number of requests of one round. */
  readonly count: number
  /** The id of PostgreSQL's first process. */
  readonly postmaster: number
}

/** The result of one round of one side, with the processor time of a request, in milliseconds. */
export type Run = LoadResult & { readonly serverMs: number; readonly databaseMs: number }

export async function runSide(side: Side, load: Load): Promise<Run> {
  const { connections, count, postmaster } = load
  const requests = Array.from({ length: count }, (_, at) => side.makeRequest(at))
  const cpu = () => ({ server: computeCpuMs(side.pid), database: computeCpuMs(postmaster) })
  const before = cpu()
  const result = requireNoFailure(
    await drive({ port: side.port, connections, requests, status: 200 }),
  )
  const after = cpu()
  return {
    ...result,
    serverMs: (after.server - before.server) / count,
    databaseMs: (after.database - before.database) / count,
  }
}

/** Compares the answers per second of both sides, in turns and after a warm-up; `cpu` states their processor time. */
export async function compareSides(
  sides: { readonly ours: Side; readonly peer: Side },
  load: Load & { readonly rounds: number },
): Promise<{ readonly comparison: Comparison; readonly cpu: string }> {
  await mustAnswerAlike(sides, load.count)
  const runs: { readonly ours: Run[]; readonly peer: Run[] } = { ours: [], peer: [] }
  const run = async (which: 'ours' | 'peer') => {
    const result = await runSide(sides[which], load)
    runs[which].push(result)
    return result.perSecond
  }
  await runSide(sides.ours, load)
  await runSide(sides.peer, load)
  const comparison = await interleave({
    rounds: load.rounds,
    ours: () => run('ours'),
    peer: () => run('peer'),
  })
  return { comparison, cpu: formatCpu(runs) }
}

/** The number of requests of a case that are compared before it is measured. */
const comparedMax = 8

async function mustAnswerAlike(
  { ours, peer }: { readonly ours: Side; readonly peer: Side },
  count: number,
): Promise<void> {
  const compared = Math.min(comparedMax, count)
  for (let n = 0; n < compared; n++) {
    const at = Math.floor((n * count) / compared)
    const [one, other] = await Promise.all(
      [ours, peer].map(async (side) => {
        const reply = await sendOnce(side.port, side.makeRequest(at))
        return { text: reply.body.toString(), records: side.parseRecords(reply.body.toString()) }
      }),
    )
    if (one?.records.length === 0 || !isDeepStrictEqual(one?.records, other?.records))
      throw new Error(
        `the two sides answer differently:\n${one?.text.slice(0, 1000)}\n${other?.text.slice(0, 1000)}`,
      )
  }
}

function formatCpu(runs: { readonly ours: readonly Run[]; readonly peer: readonly Run[] }): string {
  const mean = (all: readonly Run[], of: (run: Run) => number) =>
    all.reduce((sum, run) => sum + of(run), 0) / all.length
  const text = (all: readonly Run[]) => {
    const server = mean(all, (run) => run.serverMs)
    const database = mean(all, (run) => run.databaseMs)
    return `${(server + database).toPrecision(3)} ms (server ${server.toPrecision(2)}, database ${database.toPrecision(2)})`
  }
  return `processor time of a request: ours ${text(runs.ours)}, peer ${text(runs.peer)}`
}

/**
 * Reads the records from an answer of our service or of the bare server, whose rows of SQL stand under another
 * name.
 */
export function parsePlainRecords(text: string): readonly unknown[] {
  const { records, data } = JSON.parse(text)
  return records ?? data
}
