import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { buildOpenApi, type OpenApi } from '@tollbase/contract/openapi'
import { renderDocsPage } from '../../http/pages/docs-page.ts'
import { renderGuideText } from '../../http/pages/guide-text.ts'

const programVersion = '0.1.0'

/** The running program's knowledge of itself, for health, info and discovery. */
export type ProgramInfo = {
  readonly version: string
  readonly startedAtMs: number
  /** Scheme, host and port of the public URL. */
  readonly origin: () => string
  /** Returns whether the program was told to end. */
  readonly isDraining: () => boolean
  /** The interface as text, made once. */
  readonly openapiJson: string
  /** The page of the interface, made once for each public URL. */
  readonly docsHtml: () => Promise<string>
  /** The text for buying programs, and its address. */
  readonly guideText: () => string
  readonly guideUrl: () => string
}

type Interface = { readonly api: OpenApi; readonly text: string }

/** The same for every service of a process. */
let known: Interface | undefined

/** Describes the program as it is seen at this URL. */
export function describeProgram(
  publicUrl: () => string,
): Pick<ProgramInfo, 'version' | 'origin' | 'openapiJson' | 'docsHtml' | 'guideText' | 'guideUrl'> {
  known ??= describeInterface()
  const { api, text } = known
  let page: { readonly baseUrl: string; readonly html: Promise<string> } | undefined
  return {
    version: programVersion,
    origin: () => new URL(publicUrl()).origin,
    openapiJson: text,
    docsHtml: () => {
      const baseUrl = publicUrl()
      if (page?.baseUrl !== baseUrl) page = { baseUrl, html: renderDocsPage(api, { baseUrl }) }
      return page.html
    },
    guideText: () => renderGuideText(publicUrl()),
    guideUrl: () => `${publicUrl()}${tollbase.getGuide.path}`,
  }
}

function describeInterface(): Interface {
  const api = buildOpenApi(tollbase, { version: interfaceVersion })
  return { api, text: JSON.stringify(api) }
}
