import { invalid } from '../../base/fault.ts'
import { unknownMember } from '../../base/known-members.ts'
import { member } from '../field-path.ts'
import type { ParameterValue } from '../parameter.ts'
import type { Declared } from './declared-parameter.ts'
import { readText } from './read-argument-text.ts'

/** What came in a query string, as it stands there. */
export type SentTexts = Readonly<Record<string, string | readonly string[]>>

/** What a run is given: a value for every parameter but those that are left out. */
export type Given = ReadonlyMap<string, ParameterValue>

/**
 * The values of the parameters: each is text that is read as its type, never anything else. 400 naming the first that is
 * unknown (neither declared nor `others`), missing, repeated or not of its type.
 */
export function readArguments(
  declared: readonly Declared[],
  sent: SentTexts,
  others: ReadonlySet<string>,
): Given {
  const names = new Set(declared.map(({ name }) => name))
  const unknown = Object.keys(sent).find((name) => !names.has(name) && !others.has(name))
  if (unknown !== undefined) throw unknownMember('/query', unknown, [...names, ...others])
  const given = new Map<string, ParameterValue>()
  for (const one of declared) {
    const value = readArgument(one, Object.hasOwn(sent, one.name) ? sent[one.name] : undefined)
    if (value !== undefined) given.set(one.name, value)
  }
  return given
}

function readArgument(
  declared: Declared,
  sent: string | readonly string[] | undefined,
): ParameterValue | undefined {
  const pointer = member('/query', declared.name)
  if (sent === undefined) {
    if (declared.default !== undefined) return declared.default
    if (declared.required) throw invalid(pointer, 'is missing')
    return undefined
  }
  if (!declared.isList) {
    if (typeof sent !== 'string') throw invalid(pointer, 'is given more than once')
    return readText(sent, declared, pointer)
  }
  const texts = typeof sent === 'string' ? [sent] : sent
  if (texts.length > declared.maxItems)
    throw invalid(pointer, `is given more than ${declared.maxItems} times`)
  return texts.map((text) => readText(text, declared, pointer))
}
