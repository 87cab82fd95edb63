import { HttpReply } from '../../http/reply.ts'
import type { Operation } from '../operation.ts'

export const getDocs: Operation<'getDocs', 'program'> = async ({ service }) =>
  new HttpReply(await service.program.docsHtml(), {
    contentType: 'text/html; charset=utf-8',
    headers: {
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
    },
  })
