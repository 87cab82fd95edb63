import { assert } from '../base/assert.ts'
import { isAftermath } from './errors.ts'
import type { Row } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

/** The result of a statement. */
export type Result = {
  readonly rows: Row[]
  readonly rowCount: number | null
  readonly command: string
}

type Connection = {
  readonly begin: () => Promise<unknown>
  readonly send: (statement: SqlStatement, name?: string) => Promise<Result>
}

/**
 * The Queryable that `work` of a transaction gets; refuses use after the end, which would run outside of the
 * transaction.
 */
export class Transaction {
  /** The last error that a statement caused itself; the statements behind it may get their errors before. */
  failure: unknown
  /**
   * Begins with the first statement, and nothing is sent before that is answered: it would be done by itself where
   * BEGIN fails.
   */
  begun: Promise<unknown> | undefined
  readonly #connection: Connection
  #isBegun = false
  #tail: Promise<unknown> = Promise.resolve()
  #open = true

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async query<R extends Row>(
    statement: SqlStatement,
    options: { readonly name?: string } = {},
  ): Promise<R[]> {
    return (await this.#next(statement, options.name)).rows as R[]
  }

  async execute(statement: SqlStatement): Promise<number> {
    return (await this.#next(statement)).rowCount ?? 0
  }

  /** Waits for statements that `work` started and did not await. */
  async end(): Promise<void> {
    this.#open = false
    await this.#tail
  }

  #next(statement: SqlStatement, name?: string): Promise<Result> {
    assert(this.#open, 'a transaction was used after its end')
    this.begun ??= this.#begin()
    const send = () => this.#connection.send(statement, name)
    // Sends at once if possible, so that the server works on this statement while the next one is being made.
    const result = this.#isBegun ? send() : this.begun.then(send)
    result.catch((error) => {
      if (!isAftermath(error)) this.failure = error
    })
    this.#tail = Promise.allSettled([this.#tail, result])
    return result
  }

  #begin(): Promise<unknown> {
    const begun = this.#connection.begin()
    // Told before those that wait are, so that none that comes later is sent before them.
    begun.then(
      () => {
        this.#isBegun = true
      },
      () => undefined,
    )
    return begun
  }
}
