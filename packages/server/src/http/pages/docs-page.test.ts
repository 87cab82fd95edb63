import { runInNewContext } from 'node:vm'
import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { buildOpenApi } from '@tollbase/contract/openapi'
import { defineContract } from '@tollbase/contract/route'
import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { renderDocsPage } from './docs-page.ts'
import { listFieldRows, makeExample } from './docs-schema.ts'
import { docsScript } from './docs-style.ts'

const baseUrl = 'http://127.0.0.1:9092'

describe('the documentation page', () => {
  test('the page shows every operation, and every code it can answer with', async () => {
    const document = buildOpenApi(tollbase, { version: interfaceVersion })
    const page = await renderDocsPage(document, { baseUrl })
    for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
      expect(page).toContain(`id="${operation['x-alias-of'] ?? operation.operationId}"`)
    }
    expect(page).toContain('PAYMENT_NETWORK_UNREACHABLE')
  })

  test('the list of endpoints names each one by other words, as far as it shows them', async () => {
    const document = buildOpenApi(tollbase, { version: interfaceVersion })
    const page = await renderDocsPage(document, { baseUrl })
    const groups = page.slice(0, page.indexOf('<main>')).split('<div data-group>').slice(1)
    for (const group of groups) {
      const names = [...group.matchAll(/<a href="#[^>]*>(.*?)<\/a>/g)].map((found) => found[1])
      expect(new Set(names).size).toBe(names.length)
      for (const name of names) expect(name?.replace(/<.*>/, '').length).toBeLessThan(32)
    }
    expect(page).toContain('…/records/{key}/proof')
  })

  test('the filter shows the endpoints that have all words, and says where none has them', () => {
    const items = ['get /list find records', 'post /store records'].map((words) => ({
      ...{ dataset: { words }, hidden: false },
    }))
    let listen = () => {}
    const filter = {
      ...{ value: '', hidden: true },
      addEventListener: (_: string, listener: () => void) => {
        listen = listener
      },
    }
    const nothing = { hidden: true }
    const document = {
      getElementById: (id: string) => (id === 'filter' ? filter : nothing),
      querySelectorAll: (selector: string) => (selector === '[data-words]' ? items : []),
    }
    runInNewContext(docsScript, { document })
    const show = (value: string) => {
      filter.value = value
      listen()
      return [...items.map((item) => !item.hidden), !nothing.hidden]
    }
    expect(filter.hidden).toBe(false)
    expect(show('RECORDS get')).toEqual([true, false, false])
    expect(show('deposit')).toEqual([false, false, true])
    expect(show('')).toEqual([true, true, false])
  })

  test('the page names no address to load anything from, and forbids it by its own policy', async () => {
    const page = await renderDocsPage(buildOpenApi(tollbase, { version: interfaceVersion }), {
      baseUrl,
    })
    expect(page).toContain('default-src &#39;none&#39;')
    expect(page).not.toMatch(/\s(src|srcset|action)=|url\(|@import|style="|\son\w+="/)
    expect(page.match(/<link/g)).toBeNull()
  })

  test('the page escapes all text of the contract, so that none becomes markup', async () => {
    const evil = `<img src=x onerror="alert('1')">`
    const one = defineContract({
      readEvil: {
        method: 'POST',
        path: '/evil/:name',
        area: 'Data Query',
        summary: evil,
        description: `\`${evil}\` ${evil}`,
        access: 'public',
        shows: 'records',
        params: Type.Object({ name: Type.String({ description: evil }) }),
        body: Type.Object({ [evil]: Type.Literal(evil) }),
        reply: Type.Object({ said: Type.String({ pattern: evil, description: evil }) }),
      },
    })
    const page = await renderDocsPage(buildOpenApi(one, { version: evil }), { baseUrl: evil })
    expect(page).not.toContain('<img')
    expect(page).toContain('&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;')
  })

  test('the page is made an endpoint at a time, and other work goes on between them', async () => {
    const document = buildOpenApi(tollbase, { version: interfaceVersion })
    let isMade = false
    let turns = 0
    const count = () => {
      turns += 1
      if (!isMade) setImmediate(count)
    }
    setImmediate(count)
    await renderDocsPage(document, { baseUrl })
    isMade = true
    expect(turns).toBeGreaterThan(Object.keys(tollbase).length / 2)
  })

  test('an example can be pasted: filled path, quoted body, the key as a shell variable', async () => {
    const page = await renderDocsPage(buildOpenApi(tollbase, { version: interfaceVersion }), {
      baseUrl,
    })
    expect(page).toContain(
      `curl -X POST &#39;${baseUrl}/api/apps/weather/collections&#39; \\\n  -H &quot;X-App-Key: $APP_KEY&quot;`,
    )
  })

  test('the example of an operation is the one that its contract gives, in the body, in a form or in the query string', async () => {
    const page = await renderDocsPage(buildOpenApi(tollbase, { version: interfaceVersion }), {
      baseUrl,
    })
    const shown = (operationId: string) => {
      const card = page.slice(page.indexOf(`id="${operationId}"`))
      const [, code = ''] = /<h3>Example<\/h3><pre><code>(.*?)<\/code>/s.exec(card) ?? []
      return code.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&')
    }
    const readBody = (operationId: string) =>
      JSON.parse(/-d '(.*)'$/s.exec(shown(operationId))?.[1] ?? '')
    expect(readBody('listRecords')).toMatchObject({ root: 'weather::stations', limit: 10 })
    expect(readBody('createKey')).toMatchObject({ permissions: ['Read'] })
    expect(readBody('createCollection')).toMatchObject({ name: 'stations' })
    expect(shown('storeRecords')).toContain('/store?wait=true')
    expect(shown('executeQuery')).toContain(
      '/api/queries/weather/stations-of/data?country=AT&min_rating=3',
    )
    expect(shown('uploadBlob')).toContain(`-F 'blob=@tea.png' \\\n  -F 'metadata={"title":"Tea"}'`)
    expect(shown('revokeKey')).not.toContain('-d')
  })
})

describe('schema tables', () => {
  const components = { Point: { type: 'object', properties: { x: { type: 'number' } } } }
  const point = { $ref: '#/components/schemas/Point' }

  test('fields of fields follow their parent with their whole path', () => {
    const schema = {
      type: 'object',
      required: ['list'],
      properties: {
        list: { type: 'array', items: point },
        at: { anyOf: [point, { type: 'null' }] },
      },
    }
    const rows = listFieldRows(schema, components).map(({ path, type, required }) => [
      path,
      type,
      required,
    ])
    expect(rows).toEqual([
      ['list', 'Point[]', true],
      ['list[].x', 'number', false],
      ['at', 'Point | null', false],
      ['at.x', 'number', false],
    ])
  })

  test('a value that may be null has the meaning of the value', () => {
    const limit = { anyOf: [{ type: 'integer' }, { type: 'null' }], description: 'the most rows' }
    expect(listFieldRows({ type: 'object', properties: { limit } }, {})).toMatchObject([
      { path: 'limit', type: 'integer | null', description: 'the most rows' },
    ])
    const { components, paths } = buildOpenApi(tollbase, { version: interfaceVersion })
    const list = paths['/list']?.post?.requestBody?.content['application/json']?.schema ?? {}
    const rows = listFieldRows(list, components.schemas)
    for (const { path, description } of rows) expect(description, path).not.toBe('')
  })

  test('the words of a choice are listed, and the first is the example', () => {
    const mode = { type: 'string', enum: ['live', 'lazy'] }
    const schema = { type: 'object', required: ['mode'], properties: { mode } }
    expect(listFieldRows(schema, {})).toMatchObject([{ path: 'mode', type: '"live" | "lazy"' }])
    expect(makeExample('view', schema, {})).toEqual({ mode: 'live' })
  })

  test('a schema that contains itself ends', () => {
    const node = { $ref: '#/components/schemas/Node' }
    const Node = { type: 'object', required: ['next'], properties: { next: node } }
    expect(listFieldRows(node, { Node }).length).toBeLessThan(10)
    expect(() => JSON.stringify(makeExample('node', node, { Node }))).not.toThrow()
  })
})
