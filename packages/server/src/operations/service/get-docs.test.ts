import { withService } from '@tollbase/testing/per-engine'
import { describe, expect, test } from 'vitest'

describe('getDocs', () =>
  withService((service) => {
    test('the documentation is a page that runs nothing from elsewhere', async () => {
      const docs = await service().request('GET', '/docs')
      expect(docs.headers.get('content-type')).toContain('text/html')
      expect(docs.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(docs.text).not.toMatch(/<(script|link|img)[^>]+(src|href)="(https?:)?\/\//)
    })
  }))
