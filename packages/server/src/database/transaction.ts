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
  /** Begins, and runs this statement, which has no values, behind BEGIN. */
  readonly begin: (first?: SqlStatement) => Promise<Result>
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
   * BEGIN fails. A first statement without values goes with BEGIN, in one message: the server runs nothing of that behind
   * what fails.
   */
  begun: Promise<Result> | undefined
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
    const result = this.#send(statement, name)
    result.catch((error) => {
      if (!isAftermath(error)) this.failure = error
    })
    this.#tail = Promise.allSettled([this.#tail, result])
    return result
  }

  #send(statement: SqlStatement, name: string | undefined): Promise<Result> {
    const goesWithBegin = this.begun === undefined && isAlone(statement)
    this.begun ??= this.#begin(goesWithBegin ? statement : undefined)
    if (goesWithBegin) return this.begun
    const send = () => this.#connection.send(statement, name)
    // Sends at once if possible, so that the server works on this statement while the next one is being made.
    return this.#isBegun ? send() : this.begun.then(send)
  }

  #begin(first: SqlStatement | undefined): Promise<Result> {
    const begun = this.#connection.begin(first)
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

/** Returns true for a text that needs no values and cannot hold a second statement. */
function isAlone({ text, values }: SqlStatement): boolean {
  return values.length === 0 && !text.includes(';')
}
