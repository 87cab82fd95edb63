import { interfaceVersion, tollbase } from '@tollbase/contract/contract'
import { buildOpenApi } from '@tollbase/contract/openapi'
import { renderDocsPage } from '../../http/docs-page.ts'

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
  readonly docsHtml: () => string
}

/** Describes the program as it is seen at this URL. */
export function describeProgram(
  publicUrl: () => string,
): Pick<ProgramInfo, 'version' | 'origin' | 'openapiJson' | 'docsHtml'> {
  const api = buildOpenApi(tollbase, { version: interfaceVersion })
  return {
    version: programVersion,
    origin: () => new URL(publicUrl()).origin,
    openapiJson: JSON.stringify(api),
    docsHtml: () => renderDocsPage(api, { baseUrl: publicUrl() }),
  }
}
