import { JsonScanner, type JsonText, type JsonToken } from '@tollbase/verify/json-scanner'
import { Fault, makeInvalidFault } from './fault.ts'

/** Bounds on the shape of a text; anything beyond is refused. */
export type JsonBounds = {
  /** Deepest nesting of lists and objects. */
  readonly depthMax: number
  /** Most members of one object, and most items of one list. */
  readonly membersMax: number
  readonly itemsMax: number
  /** Most values; a list or an object counts as two. */
  readonly valuesMax: number
  /** Most characters of one text or number. */
  readonly textCharsMax: number
  /** Most blanks between two tokens. */
  readonly blanksMax: number
}

/**
 * Refuses texts of extreme shape. Nesting by the thousand overflows the stack of every recursive walk (JSON.stringify,
 * checks, PostgreSQL), objects of very many members take long to make and to look through, lists of very many items grow
 * in one piece of memory, millions of values take long to collect, and blanks are parsed with the values around them.
 */
export class BoundedScanner extends JsonScanner {
  readonly #bounds: JsonBounds
  /** Members or items so far of each object and list that is open, and which of them are lists. */
  readonly #counts: number[] = []
  readonly #lists: boolean[] = []
  #values = 0

  constructor(text: string | JsonText, bounds: JsonBounds) {
    super(text)
    this.#bounds = bounds
  }

  override next(): JsonToken {
    const before = this.end
    const token = super.next()
    this.#refuseBlanks(before)
    switch (token) {
      case 'key':
        this.#countMember()
        this.#refuseLong()
        break
      case 'string':
      case 'scalar':
        this.#countItem()
        this.#countValues(1)
        this.#refuseLong()
        break
      case '{':
      case '[':
        this.#countItem()
        this.#countValues(2)
        this.#lists.push(token === '[')
        if (this.#counts.push(0) > this.#bounds.depthMax)
          throw makeInvalidFault('', `is nested deeper than ${this.#bounds.depthMax}`)
        break
      case '}':
      case ']':
        this.#counts.pop()
        this.#lists.pop()
        break
      case 'end':
      case 'broken':
    }
    return token
  }

  #countMember(): void {
    const { membersMax } = this.#bounds
    if (this.#countOne() > membersMax)
      throw makeInvalidFault('', `has an object of more than ${membersMax} members`)
  }

  #countItem(): void {
    const { itemsMax } = this.#bounds
    if (this.#lists.at(-1) === true && this.#countOne() > itemsMax)
      throw makeInvalidFault('', `has a list of more than ${itemsMax} items`)
  }

  #countOne(): number {
    const count = (this.#counts.pop() ?? 0) + 1
    this.#counts.push(count)
    return count
  }

  #countValues(count: number): void {
    const { valuesMax } = this.#bounds
    this.#values += count
    if (this.#values > valuesMax)
      throw tooLarge(
        `has more than ${valuesMax} values (a list or an object counts as two); send it in several requests`,
      )
  }

  #refuseBlanks(before: number): void {
    const { blanksMax } = this.#bounds
    if (this.start - before > blanksMax)
      throw tooLarge(`has more than ${blanksMax} blanks between two values; send it without them`)
  }

  #refuseLong(): void {
    const { textCharsMax } = this.#bounds
    if (this.end - this.start > textCharsMax)
      throw tooLarge(`has a text of more than ${textCharsMax} characters; longer ones may be blobs`)
  }
}

function tooLarge(problem: string): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', {
    message: `The body ${problem}`,
    details: { field: '', problem },
  })
}
