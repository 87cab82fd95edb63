import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { createQueryCalls } from '@tollbase/testing/queries'
import { describe, expect, test } from 'vitest'

describe('getQueryDocs', () =>
  withService(
    (service) => {
      test('the page of a query shows everything that its owner wrote as text, and loads nothing', async () => {
        const { data, define, defineClosed } = await createQueryCalls(service())
        await defineClosed('inner')
        await define({
          name: 'page',
          description: '<script>alert(1)</script>',
          sql: `SELECT id FROM "${data.appId}"::open WHERE id = :id`,
          parameters: [{ name: 'id', description: '<img src=x onerror=alert(2)>' }],
          price: { per_access: '12' },
          example_response: { note: '</code></pre><script>alert(3)</script>' },
        })
        const page = await service().request('GET', `/docs/queries/${data.appId}/page`)
        expect(page.status).toBe(200)
        expect(page.headers.get('content-type')).toContain('text/html')
        expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
        expect(page.text).not.toMatch(/<script|<img/)
        expect(page.text).toContain('&lt;script&gt;alert(1)')
        expect(page.text).toContain('<code>12</code> atomic units ($0.000012) for each request')
        expect(page.text).toContain(`/api/queries/${data.appId}/page/data?id=value`)
        expect(page.text.match(/(?:src|href)="(?!\/api)[^"]*"/g)).toBeNull()
        expect((await service().request('GET', `/docs/queries/${data.appId}/inner`)).status).toBe(
          401,
        )
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
