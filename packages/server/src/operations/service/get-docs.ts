import { HttpReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

export const getDocs: Operation<'getDocs'> = async ({ service }) =>
  new HttpReply(service.info.docsHtml(), {
    contentType: 'text/html; charset=utf-8',
    headers: {
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    },
  })
