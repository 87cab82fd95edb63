import { readFileSync } from 'node:fs'
import { Validator } from '@seriousme/openapi-schema-validator'
import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { errors } from '@tollbase/contract/errors'
import { buildOpenApi, listErrorCodes } from '@tollbase/contract/openapi'
import type { Route } from '@tollbase/contract/route'
import { describe, expect, test } from 'vitest'

const document = buildOpenApi(tollbase, { version: interfaceVersion })

describe('the interface description', () => {
  test('the interface description is a valid OpenAPI 3.1 document', async () => {
    const result = await new Validator().validate(structuredClone(document))
    expect(result.errors).toBeUndefined()
    expect(result.valid).toBe(true)
  })

  test('the interface description holds every operation of the contract exactly once', () => {
    const described = Object.values(document.paths).flatMap((path) =>
      Object.values(path).flatMap((one) => (one['x-alias-of'] ? [] : [one.operationId])),
    )
    expect(described.toSorted()).toEqual(Object.keys(tollbase).toSorted())
  })

  test("the interface description has the specification's own paths, each other path of an operation, and every header with a key", () => {
    for (const [path, method, id] of [
      ['/apps/{app}/views', 'get', 'listViews'],
      ['/apps/{app}/views', 'post', 'createView'],
      ['/apps/{app}/views/sql', 'post', 'createViewFromSql'],
      ['/tasks/{id}', 'get', 'getTask'],
      ['/api/applications/{app}', 'get', 'getApplication'],
    ] as const)
      expect(document.paths[path]?.[method]?.['x-alias-of'], path).toBe(id)
    const ids = Object.values(document.paths).flatMap((path) =>
      Object.values(path).map((operation) => operation.operationId),
    )
    expect(new Set(ids).size).toBe(ids.length)
    const list = JSON.stringify(document.paths['/list']?.post)
    for (const name of Object.keys(document.components.securitySchemes))
      if (name !== 'operator') expect(list).toContain(`"${name}"`)
    for (const name of ['PaymentV1', 'PaymentV2']) expect(list).toContain(name)
  })

  test('no object lets a member pass unchecked because no pattern matches its name', () => {
    const unchecked: string[] = []
    const look = (value: unknown, place: string) => {
      if (typeof value !== 'object' || value === null) return
      if ('patternProperties' in value && !('additionalProperties' in value)) unchecked.push(place)
      for (const [name, inner] of Object.entries(value)) look(inner, `${place}/${name}`)
    }
    look(document, '')
    expect(unchecked).toEqual([])
  })

  test('the interface description refers only to components that are there', () => {
    const text = JSON.stringify(document)
    const references = new Set(
      [...text.matchAll(/"#\/components\/(\w+)\/(\w+)"/g)].map((m) => m[0]),
    )
    expect(references.size).toBeGreaterThan(5)
    for (const reference of references) {
      const [, , kind = '', name = ''] = reference.slice(1, -1).split('/')
      const group: Readonly<Record<string, unknown>> =
        kind in document.components
          ? document.components[kind as keyof typeof document.components]
          : {}
      expect(group[name], reference).toBeDefined()
    }
  })

  test('an operation that takes If-Match gives the ETag of what it made, may refuse with 412, and has a read that gives the ETag', () => {
    const routes: readonly Route[] = Object.values(tollbase)
    const changes = routes.filter((route) => route.requestHeaders?.includes('If-Match'))
    expect(changes.length).toBeGreaterThan(1)
    for (const change of changes) {
      const title = `${change.method} ${change.path}`
      const statuses = listErrorCodes(change).map((code) => errors[code].status)
      expect(statuses, title).toContain(412)
      expect(change.replyHeaders, title).toContain('ETag')
      const read = routes.find(({ method, path }) => method === 'GET' && path === change.path)
      expect(read?.replyHeaders, title).toContain('ETag')
    }
  })

  test('a read that gives an ETag takes If-None-Match, and answers 304', () => {
    const routes: readonly Route[] = Object.values(tollbase)
    const tagged = routes.filter(
      ({ method, replyHeaders }) => method === 'GET' && replyHeaders?.includes('ETag'),
    )
    expect(tagged.length).toBeGreaterThan(1)
    for (const { path, requestHeaders, otherStatuses } of tagged) {
      expect(requestHeaders, path).toContain('If-None-Match')
      expect(otherStatuses, path).toContain(304)
    }
  })

  test('docs/openapi.json is this description, and `npm run openapi` writes it anew', () => {
    const file = new URL('../../docs/openapi.json', import.meta.url)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(JSON.parse(JSON.stringify(document)))
  })
})
