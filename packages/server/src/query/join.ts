import {
  type Condition,
  conditionPaths,
  dataSetNames,
  type FieldPath,
  referencedPaths,
} from './condition.ts'
import type { DataSets } from './data-set.ts'
import { type Selection, selectedPaths } from './select.ts'

/** Records of a collection that are given inside each record that they belong to; frozen. */
export type Join = {
  /** The field of the answer in which they stand. */
  readonly alias: string
  /** `collection` of the same application, or `app::collection`. */
  readonly model: string
  /** A list of all, or the first one stored (null where there is none). */
  readonly many: boolean
  /** Which; `reference` conditions compare with the record that is joined to. */
  readonly where: Condition
  readonly select: Selection | undefined
  /** Joined to the joined records. */
  readonly joins: readonly Join[]
}

/** The fields that a query uses of a source, and for what. */
export type UsedFields = {
  readonly filter: readonly string[]
  readonly sort: readonly string[]
  readonly select: readonly string[] | 'all'
}

/**
 * One use of a collection by a query. `rows`: its records are what is given, one by one. `derived`: they are
 * joined, aggregated, compared or combined, which needs the owner's permission to derive.
 */
export type SourceUse = {
  readonly model: string
  readonly kind: 'rows' | 'derived'
  readonly used: UsedFields
  /** Names of the data sets that conditions on it look into. */
  readonly dataSets: readonly string[]
}

/** A collection's table, with the data sets for conditions on it; made by the caller, who has decided that they may be read. */
export type Source = {
  readonly schema: string
  readonly table: string
  readonly dataSets?: DataSets
  /**
   * In a query of SQL: the records as they were when so many entries of the chain counted, in place of those of now; SQL
   * of the number.
   */
  readonly asOf?: string
  /** With `asOf`: an SQL condition that every record fulfils, for what reading it does besides. */
  readonly noted?: string
}

/** Gives the table of every model that the query names, which the caller was told beforehand (`sourcesOf...`). */
export type Resolve = (model: string) => Source | undefined

/** What a record's own conditions, order and selection use, together with what its joins compare with. */
export function usedBy(part: {
  readonly where: Condition
  readonly select: Selection | undefined
  readonly sort?: FieldPath | undefined
  readonly joins: readonly Join[]
}): UsedFields {
  const compared = part.joins.flatMap((join) => referencedPaths(join.where))
  return {
    filter: [...new Set([...conditionPaths(part.where), ...compared])],
    sort: part.sort === undefined ? [] : [part.sort.join('.')],
    select: selectedPaths(part.select),
  }
}

/** Every use of a collection by the joins, outer ones first. */
export function joinedSources(joins: readonly Join[]): readonly SourceUse[] {
  return joins.flatMap((join): readonly SourceUse[] => [
    {
      model: join.model,
      kind: 'derived',
      used: usedBy(join),
      dataSets: dataSetNames(join.where),
    },
    ...joinedSources(join.joins),
  ])
}
