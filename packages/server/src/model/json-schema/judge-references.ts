import { isRecord } from '../../base/is-record.ts'
import type { References } from './references.ts'
import type { Compile, Judge } from './run.ts'

type Schema = Readonly<Record<string, unknown>>
type Place = {
  readonly compile: Compile
  readonly references: References
  /** The address of the resource that the references are relative to. */
  readonly base: string
}

export function makeReferenceJudges(part: Schema, place: Place): readonly Judge[] {
  const { references, base, compile } = place
  const judges: Judge[] = []
  if (typeof part.$ref === 'string') judges.push(compile(references.find(base, part.$ref) ?? false))
  if (typeof part.$dynamicRef === 'string') judges.push(judgeDynamic(part.$dynamicRef, place))
  return judges
}

/** A `$dynamicRef` to a `$dynamicAnchor` means the part of that name in the outermost resource that has one. */
function judgeDynamic(reference: string, { compile, references, base }: Place): Judge {
  const first = references.find(base, reference)
  const anchor = isRecord(first) ? first.$dynamicAnchor : undefined
  const judgeFirst = compile(first ?? false)
  if (typeof anchor !== 'string' || !reference.endsWith(`#${anchor}`)) return judgeFirst
  return (value, run) => {
    run.work.spend(run.scope.length)
    for (const resource of run.scope) {
      const part = references.findDynamic(resource, anchor)
      if (part !== undefined) return compile(part)(value, run)
    }
    return judgeFirst(value, run)
  }
}
