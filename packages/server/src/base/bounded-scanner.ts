import { JsonScanner, type JsonToken } from '@tollbase/verify/json-scanner'
import { makeInvalidFault } from './fault.ts'

/** Deepest nesting of lists and objects, and most members of one object; anything beyond is a 400. */
export type JsonBounds = { readonly depthMax: number; readonly membersMax: number }

/**
 * Refuses texts of extreme shape. Nesting by the thousand overflows the stack of every recursive walk (JSON.stringify,
 * checks, PostgreSQL), and objects of very many members take long to make and to look through.
 */
export class BoundedScanner extends JsonScanner {
  readonly #bounds: JsonBounds
  /** Keys so far of each list and object that is open. */
  readonly #members: number[] = []

  constructor(text: string, bounds: JsonBounds) {
    super(text)
    this.#bounds = bounds
  }

  override next(): JsonToken {
    const token = super.next()
    if (token === 'key') this.#countMember()
    else if (token === '{' || token === '[') {
      if (this.#members.push(0) > this.#bounds.depthMax)
        throw makeInvalidFault('', `is nested deeper than ${this.#bounds.depthMax}`)
    } else if (token === '}' || token === ']') this.#members.pop()
    return token
  }

  #countMember(): void {
    const members = (this.#members.pop() ?? 0) + 1
    if (members > this.#bounds.membersMax)
      throw makeInvalidFault('', `has an object of more than ${this.#bounds.membersMax} members`)
    this.#members.push(members)
  }
}
