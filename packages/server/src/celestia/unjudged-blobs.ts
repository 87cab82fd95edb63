import { Pause } from '../base/pause.ts'

/** The pause before the node is asked again about a blob that its answers did not let us judge. */
const restMs = 30_000

type Unjudged = { readonly rest: Pause; readonly problem: string }

/** The blobs that could not be judged when they were looked at last. */
export class UnjudgedBlobs {
  readonly #blobs = new Map<string, Unjudged>()

  /** Drops all but these: nobody asks about the others any more. */
  filter(ids: readonly string[]): void {
    for (const id of this.#blobs.keys()) if (!ids.includes(id)) this.#blobs.delete(id)
  }

  isResting(id: string, nowMs: number): boolean {
    return this.#blobs.get(id)?.rest.isOver(nowMs) === false
  }

  /** Begins the pause of a blob; returns true where its problem is another one than before. */
  note(id: string, problem: string, nowMs: number): boolean {
    const isNew = this.#blobs.get(id)?.problem !== problem
    const rest = new Pause()
    rest.begin(nowMs, restMs)
    this.#blobs.set(id, { rest, problem })
    return isNew
  }

  remove(id: string): void {
    this.#blobs.delete(id)
  }
}
