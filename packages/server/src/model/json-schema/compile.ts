import { isRecord } from '../../base/is-record.ts'
import { makeInnerJudges, makeLastJudges } from './judge-inner.ts'
import { makeReferenceJudges } from './judge-references.ts'
import { makeValueJudges } from './judge-values.ts'
import { readReferences } from './references.ts'
import { type Compile, type Judge, Seen } from './run.ts'

/**
 * Compiles a JSON Schema to one function. It takes work for each value that it judges and each name that it looks up, so
 * its time is bounded, whatever the schema and the value are.
 */
export function compileJsonSchema(root: Readonly<Record<string, unknown>>): Judge {
  const references = readReferences(root)
  const made = new Map<object, { judge: Judge }>()
  const compileIn =
    (outer: string | undefined): Compile =>
    (part) => {
      if (!isRecord(part)) return part === false ? refuse : accept
      const base = references.findBase(part)
      const entry = made.get(part) ?? { judge: accept }
      if (!made.has(part)) {
        // A part may refer to itself, so it is known before it is compiled.
        made.set(part, entry)
        const compile = compileIn(base)
        const judges = [
          ...makeValueJudges(part),
          ...makeReferenceJudges(part, { compile, references, base }),
          ...makeInnerJudges(part, compile),
        ]
        entry.judge = joinJudges(judges, makeLastJudges(part, compile))
      }
      return outer === base ? (value, run) => entry.judge(value, run) : enterResource(entry, base)
    }
  return compileIn(undefined)(root)
}

const accept: Judge = (_, run) => {
  run.work.spend(1)
  return true
}
const refuse: Judge = (_, run) => {
  run.work.spend(1)
  return run.fail(() => 'must not be there')
}

function enterResource(entry: { readonly judge: Judge }, base: string): Judge {
  return (value, run) => {
    run.scope.push(base)
    const isRight = entry.judge(value, run)
    run.scope.pop()
    return isRight
  }
}

function joinJudges(judges: readonly Judge[], last: readonly Judge[]): Judge {
  return (value, run) => {
    run.work.spend(1)
    const outer = run.seen
    const seen = last.length > 0 || outer !== undefined ? new Seen() : undefined
    run.seen = seen
    const isRight = run.judgeBy(judges, value) && run.judgeBy(last, value)
    run.seen = outer
    if (isRight && seen !== undefined) outer?.add(seen, run.work)
    return isRight
  }
}
