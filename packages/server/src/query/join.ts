import {
  type Condition,
  type FieldPath,
  listConditionPaths,
  listDataSetNames,
  listReferencedPaths,
} from './condition.ts'
import type { DataSets } from './data-set.ts'
import type { FieldColumns } from './field-column.ts'
import { listSelectedPaths, type Selection } from './select.ts'

/** A join: records of a collection that are given inside each record that they belong to; frozen. */
export type Join = {
  /** The field of the answer that holds them. */
  readonly alias: string
  /** `collection` of the same application, or `app::collection`. */
  readonly model: string
  /** True: a list of all; false: the first one stored (null if there is none). */
  readonly many: boolean
  /** The condition on them; `reference` conditions compare with the record that is joined to. */
  readonly where: Condition
  readonly select: Selection | undefined
  /** The joins to the joined records. */
  readonly joins: readonly Join[]
}

/** The fields of a source that a query uses, by purpose. */
export type UsedFields = {
  readonly filter: readonly string[]
  readonly sort: readonly string[]
  readonly select: readonly string[] | 'all'
}

/**
 * One use of a collection by a query. `rows`: its records are given, one by one. `derived`: they are joined,
 * aggregated, compared or combined, which needs the owner's permission to derive.
 */
export type SourceUse = {
  readonly model: string
  readonly kind: 'rows' | 'derived'
  readonly used: UsedFields
  /** Names of the data sets that conditions on it look into. */
  readonly dataSets: readonly string[]
}

/** A collection's table, with the data sets for conditions on it; the caller has checked that they may be read. */
export type Source = {
  readonly schema: string
  readonly table: string
  readonly dataSets?: DataSets
  /** The columns that the table has for fields; none where it is a view's. */
  readonly fieldColumns?: FieldColumns | undefined
  /** Those of them whose fields no index uses, so that conditions may test them. */
  readonly filterColumns?: FieldColumns | undefined
  /**
   * For a query in SQL: reads the records as they were when so many entries of the chain counted, instead of the
   * current ones; SQL of the number.
   */
  readonly asOf?: string
  /** With `asOf`: an SQL condition that every record satisfies, for the side effect of evaluating it. */
  readonly noted?: string
}

/**
 * Returns the table of each model that the query names; the caller was told the models beforehand
 * (`collect...Sources`).
 */
export type Resolve = (model: string) => Source | undefined

/**
 * Collects the fields that a record's own conditions, order and selection use, and those that its joins compare
 * with.
 */
export function collectUsedFields(part: {
  readonly where: Condition
  readonly select: Selection | undefined
  readonly sort?: FieldPath | undefined
  readonly joins: readonly Join[]
}): UsedFields {
  const compared = part.joins.flatMap((join) => listReferencedPaths(join.where))
  return {
    filter: [...new Set([...listConditionPaths(part.where), ...compared])],
    sort: part.sort === undefined ? [] : [part.sort.join('.')],
    select: listSelectedPaths(part.select),
  }
}

/** Lists every use of a collection by the joins, outer ones first. */
export function listJoinedSources(joins: readonly Join[]): readonly SourceUse[] {
  return joins.flatMap((join): readonly SourceUse[] => [
    {
      model: join.model,
      kind: 'derived',
      used: collectUsedFields(join),
      dataSets: listDataSetNames(join.where),
    },
    ...listJoinedSources(join.joins),
  ])
}
