import { assert } from '../base/assert.ts'
import { isAftermath } from './errors.ts'
import type { Row } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

/** What a statement comes to. */
export type Result = {
  readonly rows: Row[]
  readonly rowCount: number | null
  readonly command: string
}
type Send = (statement: SqlStatement, name?: string) => Promise<Result>

/** What `work` of a transaction holds (a Queryable); refuses use after the end, which would run outside of the transaction. */
export class Transaction {
  /** The last error of a statement that was at fault itself; those sent behind it may be told of theirs before. */
  failure: unknown
  readonly #send: Send
  #tail: Promise<unknown> = Promise.resolve()
  #open = true

  constructor(send: Send) {
    this.#send = send
  }

  async query<R extends Row>(
    statement: SqlStatement,
    options: { readonly name?: string } = {},
  ): Promise<R[]> {
    return (await this.#next(() => this.#send(statement, options.name))).rows as R[]
  }

  async execute(statement: SqlStatement): Promise<number> {
    return (await this.#next(() => this.#send(statement))).rowCount ?? 0
  }

  /** Waits for statements that `work` started and did not await. */
  async end(): Promise<void> {
    this.#open = false
    await this.#tail
  }

  #next<T>(send: () => Promise<T>): Promise<T> {
    assert(this.#open, 'a transaction was used after its end')
    const result = send()
    result.catch((error) => {
      if (!isAftermath(error)) this.failure = error
    })
    this.#tail = Promise.allSettled([this.#tail, result])
    return result
  }
}
