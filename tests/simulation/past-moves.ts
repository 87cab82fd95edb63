import { listEffects, type Mined, type Transfer, toAuthorizationKey } from './token-forms.ts'

/** A transfer that was in a block as deep as the service waits for, and by which transaction. */
type Once = { readonly transfer: Transfer; readonly hash: string }

/** The outcomes of authorizations in blocks as deep as the service waits for, and that were taken back. */
export class PastMoves {
  /** By authorization, the transfers that were confirmed. */
  readonly #once = new Map<string, Once[]>()
  /** The authorizations that did not move. */
  readonly #failed = new Set<string>()

  /** Lists the transfers of an authorization that were confirmed; it may have moved again since. */
  list(key: string): readonly Once[] {
    return this.#once.get(key) ?? []
  }

  /** Says that the service may have taken an authorization for one that cannot move; it may move since. */
  hasFailed(key: string): boolean {
    return this.#failed.has(key)
  }

  /** Notes which transfers the service may have taken for made, or for failed. */
  note(confirmed: readonly Mined[]): void {
    for (const mined of confirmed) {
      const { parts, action } = mined.transaction
      const moved = listEffects(mined).filter(({ effect }) => effect === 'moved')
      for (const { transfer } of parts ?? [action])
        if (transfer !== undefined) this.#failed.add(toAuthorizationKey(transfer))
      for (const { transaction } of moved) {
        const { transfer } = transaction.action
        if (transfer === undefined) continue
        const key = toAuthorizationKey(transfer)
        this.#failed.delete(key)
        this.#once.set(key, [...this.list(key), { transfer, hash: transaction.hash }])
      }
    }
  }
}
