import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { buildOpenApi } from '@tollbase/contract/openapi'
import type { Schema } from '@tollbase/contract/openapi-components'
import { describe, expect, test } from 'vitest'

const document = buildOpenApi(tollbase, { version: interfaceVersion })
const { schemas } = document.components

describe('the descriptions of the interface', () => {
  test('every parameter, and every member of a request at every depth, says what it is', () => {
    const undescribed = listOperations().flatMap(({ place, parameters, bodies }) => [
      ...parameters
        .filter((one) => isBlank(one.description))
        .map(({ name }) => `${place}: ${name}`),
      ...bodies.flatMap((body) => listUndescribed(body)).map((member) => `${place}: ${member}`),
    ])
    expect(undescribed).toEqual([])
  })

  test('no description, and no sentence of one, begins with a bare question word', () => {
    const texts = [...listTexts(document)]
    expect(texts.length).toBeGreaterThan(1000)
    const isBare = (text: string) =>
      /^(who|what|of|how|whether)\b/i.test(text) || /[.:] (Who|What|Of|How|Whether)\b/.test(text)
    expect(texts.filter(isBare)).toEqual([])
  })

  test('every summary says what the call does or gets, and is no question', () => {
    const summaries = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ summary }) => summary),
    )
    const isQuestion = (text: string) => /^(who|what|of|how|whether|which|when|where)\b/i.test(text)
    expect(summaries.filter(isQuestion)).toEqual([])
  })

  test('a description can be read alone: none says only that the thing is the same as another one', () => {
    expect([...listTexts(document)].filter((text) => /^the same\b/i.test(text))).toEqual([])
  })
})

/** Lists the members of a schema that have no description, by their paths; each component is looked into once. */
function listUndescribed(
  schema: unknown,
  path = '',
  seen: ReadonlySet<string> = new Set(),
): string[] {
  if (!isSchema(schema)) return []
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
    return seen.has(name) ? [] : listUndescribed(schemas[name], path, new Set([...seen, name]))
  }
  const members = isSchema(schema.properties) ? Object.entries(schema.properties) : []
  const choices = Array.isArray(schema.anyOf) ? schema.anyOf : []
  return [
    ...members.flatMap(([name, member]) => {
      const at = path === '' ? name : `${path}.${name}`
      return [...(isDescribed(member) ? [] : [at]), ...listUndescribed(member, at, seen)]
    }),
    ...choices.flatMap((choice) => listUndescribed(choice, path, seen)),
    ...listUndescribed(schema.items, `${path}[]`, seen),
    ...listUndescribed(schema.additionalProperties, `${path}.*`, seen),
  ]
}

/** Lists the operations with their own parameters and the schemas of their bodies. */
function listOperations() {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation['x-alias-of'] === undefined)
      .map(([method, operation]) => ({
        place: `${method.toUpperCase()} ${path}`,
        parameters: (operation.parameters ?? []).flatMap((one) => ('name' in one ? [one] : [])),
        bodies: Object.values(operation.requestBody?.content ?? {}).map(({ schema }) => schema),
      })),
  )
}

function isDescribed(member: unknown): boolean {
  if (!isSchema(member)) return false
  const name = typeof member.$ref === 'string' ? member.$ref.split('/').at(-1) : undefined
  return !isBlank(member.description ?? (name && schemas[name]?.description))
}

function isBlank(text: unknown): boolean {
  return typeof text !== 'string' || text.trim() === ''
}

function* listTexts(value: unknown): Iterable<string> {
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value))
    if (name === 'description' && typeof inner === 'string') yield inner
    else yield* listTexts(inner)
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
