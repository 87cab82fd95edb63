import { isDeepStrictEqual } from 'node:util'
import { drive, type LoadResult, noFailure, once } from './load.ts'
import { cpuMsOf } from './processes.ts'
import { type Comparison, interleave } from './rounds.ts'

/** A server under load. */
export type Side = {
  readonly port: number
  readonly pid: number
  readonly requestOf: (at: number) => Buffer
  /** The records in the text of an answer, in the form in which the sides' are compared. */
  readonly recordsOf: (text: string) => readonly unknown[]
}

export type Load = {
  readonly connections: number
  /** Requests of one round. */
  readonly count: number
  /** Process of PostgreSQL above all others. */
  readonly postmaster: number
}

/** One round of one side, with the processor time that a request took, in milliseconds. */
export type Run = LoadResult & { readonly serverMs: number; readonly databaseMs: number }

export async function runSide(side: Side, load: Load): Promise<Run> {
  const { connections, count, postmaster } = load
  const requests = Array.from({ length: count }, (_, at) => side.requestOf(at))
  const cpu = () => ({ server: cpuMsOf(side.pid), database: cpuMsOf(postmaster) })
  const before = cpu()
  const result = noFailure(await drive({ port: side.port, connections, requests, status: 200 }))
  const after = cpu()
  return {
    ...result,
    serverMs: (after.server - before.server) / count,
    databaseMs: (after.database - before.database) / count,
  }
}

/** Both sides in turns by how much they answer in a second, after a warm-up; the note tells their processor time. */
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
  return { comparison, cpu: cpuText(runs) }
}

/** So many requests of a case are compared before it is measured. */
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
        const reply = await once(side.port, side.requestOf(at))
        return { text: reply.body.toString(), records: side.recordsOf(reply.body.toString()) }
      }),
    )
    if (one?.records.length === 0 || !isDeepStrictEqual(one?.records, other?.records))
      throw new Error(
        `the two sides answer differently:\n${one?.text.slice(0, 1000)}\n${other?.text.slice(0, 1000)}`,
      )
  }
}

function cpuText(runs: { readonly ours: readonly Run[]; readonly peer: readonly Run[] }): string {
  const mean = (all: readonly Run[], of: (run: Run) => number) =>
    all.reduce((sum, run) => sum + of(run), 0) / all.length
  const text = (all: readonly Run[]) => {
    const server = mean(all, (run) => run.serverMs)
    const database = mean(all, (run) => run.databaseMs)
    return `${(server + database).toPrecision(3)} ms (server ${server.toPrecision(2)}, database ${database.toPrecision(2)})`
  }
  return `processor time of a request: ours ${text(runs.ours)}, peer ${text(runs.peer)}`
}

/** Of our service and of the bare server; rows of SQL have another name. */
export function plainRecords(text: string): readonly unknown[] {
  const { records, data } = JSON.parse(text)
  return records ?? data
}
