import { isRecord } from '../../base/is-record.ts'
import { compilePattern } from '../../query/pattern.ts'
import type { Compile, Judge, Run } from './run.ts'

type Schema = Readonly<Record<string, unknown>>

type MakeJudges = (schema: Schema, compile: Compile) => readonly Judge[]

/** The keywords that have schemas in them; those of one row are judged together. */
const makers: ReadonlyMap<string, MakeJudges> = new Map(
  (
    [
      [['properties', 'patternProperties', 'additionalProperties'], judgeMembers],
      [['propertyNames'], judgeNames],
      [['items', 'prefixItems', 'additionalItems'], judgeItems],
      [['contains'], judgeContained],
      [['dependentSchemas', 'dependencies'], judgeDependent],
      [['allOf', 'anyOf', 'oneOf', 'not'], judgeCombined],
      [['if'], judgeCondition],
    ] as const
  ).flatMap(([names, make]) => names.map((name): [string, MakeJudges] => [name, make])),
)

export function makeInnerJudges(schema: Schema, compile: Compile): readonly Judge[] {
  const needed = new Set(Object.keys(schema).flatMap((keyword) => makers.get(keyword) ?? []))
  return [...needed].flatMap((make) => make(schema, compile))
}

function judgeMembers(schema: Schema, compile: Compile): readonly Judge[] {
  const { properties, patternProperties, additionalProperties } = schema
  const byName = new Map(listEntries(properties).map(([name, part]) => [name, compile(part)]))
  const byPattern = listEntries(patternProperties).map(([pattern, part]) => ({
    matches: compilePattern(pattern, '').matches,
    judge: compile(part),
  }))
  const others = isSchema(additionalProperties) ? compile(additionalProperties) : undefined
  const names = [...byName.keys()]
  const judgeMember = (name: string, inner: unknown, run: Run): boolean => {
    const named = byName.get(name)
    let isKnown = named !== undefined
    let isRight = named === undefined || run.enter(name, named, inner)
    for (const { matches, judge } of byPattern) {
      if (!matches(name, run.work)) continue
      isKnown = true
      isRight = run.enter(name, judge, inner) && isRight
    }
    if (!isKnown && others === undefined) return true
    run.seeName(name)
    if (isKnown) return isRight
    if (additionalProperties === false) return run.failMember(name, names)
    return others === undefined || run.enter(name, others, inner)
  }
  if (byPattern.length === 0 && others === undefined)
    return names.length === 0 ? [] : [judgeNamed(byName)]
  return [
    (value, run) => {
      if (!isRecord(value)) return true
      const given = run.listNames(value)
      return run.every(given, (name) => judgeMember(name, value[name], run))
    },
  ]
}

/** Names up to which each is looked up in the value; of more, those that the value has are looked up in the schema. */
const fewNames = 32

function judgeNamed(byName: ReadonlyMap<string, Judge>): Judge {
  const names = [...byName.keys()]
  return (value, run) => {
    if (!isRecord(value)) return true
    const isFew = names.length <= fewNames
    const list = isFew ? names : run.listNames(value)
    if (isFew) run.work.spend(list.length)
    return run.every(list, (name) => {
      const judge = byName.get(name)
      if (judge === undefined || !Object.hasOwn(value, name)) return true
      run.seeName(name)
      return run.enter(name, judge, value[name])
    })
  }
}

function judgeNames({ propertyNames }: Schema, compile: Compile): readonly Judge[] {
  if (!isSchema(propertyNames)) return []
  const judge = compile(propertyNames)
  return [
    (value, run) => {
      if (!isRecord(value)) return true
      return run.every(
        run.listNames(value),
        (name) =>
          run.test(judge, name) ||
          run.fail(() => 'has a name that the schema does not allow', name),
      )
    },
  ]
}

function judgeItems(schema: Schema, compile: Compile): readonly Judge[] {
  const { items, prefixItems, additionalItems } = schema
  // Draft 7 has the first items as a list in `items`.
  const [first, rest] = Array.isArray(items) ? [items, additionalItems] : [prefixItems, items]
  const firsts = (Array.isArray(first) ? first : []).map(compile)
  const others = isSchema(rest) ? compile(rest) : undefined
  if (firsts.length === 0 && others === undefined) return []
  return [
    (value, run) => {
      if (!Array.isArray(value)) return true
      const judged = others === undefined ? value.slice(0, firsts.length) : value
      return run.every(judged, (item, at) => {
        const judge = firsts[at] ?? others
        if (judge === undefined) return true
        run.seeItem(at)
        return run.enter(at, judge, item)
      })
    },
  ]
}

function judgeContained(schema: Schema, compile: Compile): readonly Judge[] {
  const { contains, minContains, maxContains } = schema
  if (!isSchema(contains)) return []
  const judge = compile(contains)
  const least = typeof minContains === 'number' ? minContains : 1
  const most = typeof maxContains === 'number' ? maxContains : Number.POSITIVE_INFINITY
  const wanted = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`
  const isContained: Judge = (item, run) => run.enter(0, judge, item)
  return [
    (value, run) => {
      if (!Array.isArray(value)) return true
      run.work.spend(value.length)
      let found = 0
      for (const [at, item] of value.entries()) {
        if (!run.test(isContained, item)) continue
        found += 1
        run.seeItem(at)
      }
      return (
        (found >= least && found <= most) ||
        run.fail(() => `must have ${wanted} of the items that contains asks for`)
      )
    },
  ]
}

function judgeDependent(schema: Schema, compile: Compile): readonly Judge[] {
  // Draft 7 has lists of names beside these in `dependencies`.
  const parts = [...listEntries(schema.dependentSchemas), ...listEntries(schema.dependencies)]
  return parts
    .filter(([, part]) => isSchema(part))
    .map(([name, part]): Judge => {
      const judge = compile(part)
      return (value, run) => {
        run.work.spend(1)
        return !isRecord(value) || !Object.hasOwn(value, name) || judge(value, run)
      }
    })
}

function judgeCombined(schema: Schema, compile: Compile): readonly Judge[] {
  const { allOf, anyOf, oneOf, not } = schema
  const judges: Judge[] = Array.isArray(allOf) ? allOf.map(compile) : []
  if (Array.isArray(anyOf)) {
    const parts = anyOf.map(compile)
    judges.push((value, run) => {
      let isRight = false
      for (const judge of parts) {
        isRight = run.test(judge, value) || isRight
        // Each one that is right tells what it judged.
        if (isRight && run.seen === undefined) break
      }
      return isRight || run.fail(() => `must match one of the ${parts.length} schemas of anyOf`)
    })
  }
  if (Array.isArray(oneOf)) {
    const parts = oneOf.map(compile)
    judges.push((value, run) => {
      const found = parts.filter((judge) => run.test(judge, value)).length
      return (
        found === 1 ||
        run.fail(
          () => `must match one of the ${parts.length} schemas of oneOf, and matches ${found}`,
        )
      )
    })
  }
  if (isSchema(not)) {
    const judge = compile(not)
    judges.push(
      (value, run) => !run.test(judge, value) || run.fail(() => 'must not match the schema of not'),
    )
  }
  return judges
}

function judgeCondition(schema: Schema, compile: Compile): readonly Judge[] {
  if (!isSchema(schema.if)) return []
  const judgeIf = compile(schema.if)
  const judgeThen = isSchema(schema.then) ? compile(schema.then) : undefined
  const judgeElse = isSchema(schema.else) ? compile(schema.else) : undefined
  return [
    (value, run) => {
      const judge = run.test(judgeIf, value) ? judgeThen : judgeElse
      return judge?.(value, run) ?? true
    },
  ]
}

/** Makes the judges of what no other keyword judged, which is known once all others were found right. */
export function makeLastJudges(schema: Schema, compile: Compile): readonly Judge[] {
  const { unevaluatedItems, unevaluatedProperties } = schema
  const judges: Judge[] = []
  if (isSchema(unevaluatedItems)) {
    const judge = compile(unevaluatedItems)
    judges.push((value, run) => {
      if (!Array.isArray(value)) return true
      run.work.spend(value.length)
      return run.every(value, (item, at) => {
        if (run.seen?.items.has(at) === true) return true
        run.seeItem(at)
        return run.enter(at, judge, item)
      })
    })
  }
  if (isSchema(unevaluatedProperties)) {
    const judge = compile(unevaluatedProperties)
    judges.push((value, run) => {
      if (!isRecord(value)) return true
      return run.every(run.listNames(value), (name) => {
        if (run.seen?.names.has(name) === true) return true
        run.seeName(name)
        if (unevaluatedProperties === false) return run.failMember(name, [])
        return run.enter(name, judge, value[name])
      })
    })
  }
  return judges
}

function isSchema(value: unknown): boolean {
  return typeof value === 'boolean' || isRecord(value)
}

function listEntries(value: unknown): readonly (readonly [string, unknown])[] {
  return isRecord(value) ? Object.entries(value) : []
}
