import { awaitTurn } from './await-turn.ts'
import { concatInTurns } from './concat-in-turns.ts'

/** Characters that are printed without a pause, unless one part is longer. */
const charsAtOnce = 64 * 1024
/** Levels of lists and objects that are printed part by part: those of an object of lists. */
const levelsApart = 2
/** Lists and objects with more in them, down to these levels, may be long: each of a few queries may be. */
const fewMembers = 24
const levelsCounted = 3

/**
 * Prints a value as `JSON.stringify` does. Other requests have turns between the parts: a list of all that an
 * application has defined can have tens of megabytes. `note` is told of the bytes that are printed by now.
 */
export async function printJsonInTurns(
  value: unknown,
  note: (bytes: number) => void = () => undefined,
): Promise<string | Buffer> {
  const whole: Buffer[] = []
  let bytes = 0
  let text = ''
  await print(value, levelsApart)
  return whole.length === 0 ? text : concatInTurns([...whole, Buffer.from(text)])

  async function add(part: string): Promise<void> {
    text += part
    if (text.length < charsAtOnce) return
    const printed = Buffer.from(text)
    whole.push(printed)
    bytes += printed.length
    note(bytes)
    text = ''
    await awaitTurn()
  }

  async function print(each: unknown, levels: number): Promise<void> {
    if (levels === 0 || typeof each !== 'object' || each === null || 'toJSON' in each)
      return add(JSON.stringify(each) ?? 'null')
    const isList = Array.isArray(each)
    const members = Object.entries(each).filter(([, member]) => isList || isPrinted(member))
    await add(isList ? '[' : '{')
    for (const [at, [name, member]] of members.entries()) {
      text += `${at === 0 ? '' : ','}${isList ? '' : `${JSON.stringify(name)}:`}`
      await print(member, levels - 1)
    }
    await add(isList ? ']' : '}')
  }
}

/** Returns true if a value is printed in one turn soon enough. It has few members down to those levels, as most have. */
export function isShortJson(value: unknown): boolean {
  return countMembers(value, levelsCounted) <= fewMembers
}

function countMembers(value: unknown, levels: number): number {
  if (levels === 0 || typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value) && value.length > fewMembers) return value.length
  let count = 0
  for (const name in value) {
    count += 1 + countMembers((value as Record<string, unknown>)[name], levels - 1)
    if (count > fewMembers) return count
  }
  return count
}

function isPrinted(member: unknown): boolean {
  return member !== undefined && typeof member !== 'function' && typeof member !== 'symbol'
}
