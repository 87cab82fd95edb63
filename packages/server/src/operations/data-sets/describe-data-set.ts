import type { DataSetDefinition } from '../../model/definitions.ts'

/** A data set as callers see it, whoever provides it. */
export function dataSetView({
  name,
  kind,
  count,
  public: isPublic,
  updated_at,
}: DataSetDefinition) {
  return { name, kind, count, public: isPublic, provider: 'application', updated_at } as const
}
