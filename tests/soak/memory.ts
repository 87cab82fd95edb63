import { readFileSync } from 'node:fs'

type Sample = { readonly pid: number; readonly ageMs: number; readonly mebibytes: number }

/** After this time in one process its caches and compiled code are complete. */
const warmUpMs = 10_000

/** Resident memory of the service over the processes of a run. */
export class Memory {
  readonly #samples: Sample[] = []
  #pid = 0
  #since = 0

  sample(pid: number): void {
    if (pid !== this.#pid) {
      this.#pid = pid
      this.#since = Date.now()
    }
    const mebibytes = readResidentMebibytes(pid)
    if (mebibytes !== undefined)
      this.#samples.push({ pid, ageMs: Date.now() - this.#since, mebibytes })
  }

  /**
   * Describes the last process, from its warm-up to its end, with the slope of the straight line through all
   * samples.
   */
  summary(): string {
    const warm = this.#samples.filter(({ pid, ageMs }) => pid === this.#pid && ageMs >= warmUpMs)
    const [first] = warm
    const last = warm.at(-1)
    if (first === undefined || last === undefined || first === last)
      return 'memory: the last process was too short'
    const seconds = Math.round((last.ageMs - first.ageMs) / 1000)
    return `memory: ${first.mebibytes} MiB first, ${last.mebibytes} MiB last, over ${seconds} s: ${slope(warm).toFixed(1)} MiB a minute`
  }
}

function readResidentMebibytes(pid: number): number | undefined {
  try {
    const kibibytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kibibytes === undefined ? undefined : Math.round(Number(kibibytes) / 1024)
  } catch {
    return undefined
  }
}

/** The slope by least squares, in MiB a minute. */
function slope(samples: readonly Sample[]): number {
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length
  const times = samples.map(({ ageMs }) => ageMs / 60_000)
  const sizes = samples.map(({ mebibytes }) => mebibytes)
  const [time, size] = [mean(times), mean(sizes)]
  const covariance = samples.reduce(
    (sum, _, at) => sum + ((times[at] ?? 0) - time) * ((sizes[at] ?? 0) - size),
    0,
  )
  const variance = times.reduce((sum, one) => sum + (one - time) ** 2, 0)
  return variance === 0 ? 0 : covariance / variance
}
