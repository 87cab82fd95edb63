import type { DataSetDefinition } from '../../model/definitions.ts'

/** Describes a data set as callers see it. */
export function describeDataSet({
  name,
  kind,
  count,
  public: isPublic,
  updated_at,
}: DataSetDefinition) {
  return { name, kind, count, public: isPublic, provider: 'application', updated_at } as const
}
