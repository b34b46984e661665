import { z } from 'zod';
import { inSteps, severity, wordsOf, workflowFields } from '../calls/fields.ts';
import { defineTool } from '../calls/tool.ts';
import { isRecord } from '../core/json.ts';

const categories = [
  ...['A01_Broken_Access_Control', 'A02_Cryptographic_Failures', 'A03_Injection', 'A04_Insecure_Design'],
  ...['A05_Security_Misconfiguration', 'A06_Vulnerable_Components', 'A07_Authentication_Failures'],
  ...['A08_Integrity_Failures', 'A09_Logging_Failures', 'A10_SSRF'],
];

const role = `You are the security auditor who checks what the caller has audited step by step. Find the weaknesses that an attacker could use, judge what they would cost, and say how to close them without breaking what works.

Principles:
- Evidence only: every finding names the file and line it rests on. What you could not see is a gap in the audit, not a finding. Invent nothing.
- Rate by what an attacker can really reach at the threat level given below, not by the name of the weakness.
- Keep to scope, focus, frameworks and lowest severity where they are named below.
- Remedies are the smallest safe change in the stack that is there; say what they could break.

Go through, as far as it applies to this kind of system (web, API, mobile, cloud, command line):
- who may do what: authentication, sessions and tokens, authorisation on every path, separation of tenants;
- what comes in: validation, injection of every kind, paths, uploads, deserialisation, requests made on behalf of others, templates;
- what is protected: secrets, keys, encryption at rest and in transit, personal data, logs that tell too much;
- what surrounds it: dependencies and their known weaknesses, build and delivery, defaults, headers, cloud rights, network;
- how it fails: limits, exhaustion, races, error messages, missing traces of an attack;
- the ten categories of OWASP 2021: A01 access control, A02 cryptography, A03 injection, A04 design, A05 configuration, A06 outdated components, A07 authentication, A08 integrity, A09 logging, A10 server-side request forgery;
- the named frameworks: for SOC2, PCI DSS, HIPAA or GDPR (and others alike) the controls that code and configuration can show.

${severity.scale} A hole is critical when it can be used from outside now, with grave harm; high when that takes effort or rights; medium when it needs further conditions; low when it only makes another attack easier. Time to close: 0-30 days for critical and high, 1-3 months, 3-12 months, later.

Answer with one JSON object and nothing else:
{"status": "security_analysis_complete",
 "summary": "…",
 "investigation_steps": ["…"],
 "security_findings": [{"category": "A01…A10 or another", "severity": "Critical|High|Medium|Low", "vulnerability": "name", "description": "…", "impact": "…", "exploitability": "how, by whom, how hard", "evidence": "file:line …", "remediation": "…", "timeline": "…", "file_references": ["file:line"]}],
 "owasp_assessment": {"A01_Broken_Access_Control": {"status": "Vulnerable|Secure", "findings": ["file:line …"], "recommendations": ["…"]}},
 "compliance_assessment": [{"framework": "…", "status": "Compliant|Partially_Compliant|Non_Compliant|Not_Assessed", "gaps": ["…"], "recommendations": ["…"]}],
 "risk_assessment": {"overall_risk_level": "Critical|High|Medium|Low", "threat_landscape": "…", "attack_vectors": ["…"], "business_impact": "…", "likelihood_assessment": "…"},
 "remediation_roadmap": [{"priority": "Critical|High|Medium|Low", "timeline": "…", "effort": "Low|Medium|High", "description": "…", "dependencies": ["…"], "success_criteria": "…", "cost_impact": "…"}],
 "positive_security_findings": ["…"],
 "monitoring_recommendations": ["…"],
 "investigation_summary": "…"}
owasp_assessment has each category that applies to this system, in that form, under its key: ${categories.join(', ')}. One that does not apply is left out. Findings come most severe first. An empty list says that you looked and found nothing; leave out what you did not look at.`;

const levels = ['low', 'medium', 'high', 'critical'] as const;
const fields = {
  ...workflowFields,
  security_scope: z.string().optional(),
  threat_level: z.enum(levels).optional(),
  compliance_requirements: z.array(z.string()).optional(),
  audit_focus: z.enum(['owasp', 'compliance', 'infrastructure', 'dependencies', 'comprehensive']).optional(),
  severity_filter: severity.filter,
};

export const secaudit = defineTool({
  name: 'secaudit',
  title: 'Audit security',
  description: 'Audit security in steps: OWASP, threats, dependencies, compliance; an expert model checks.',
  toolset: 'code',
  ...inSteps(fields),
  mode: {
    kind: 'workflow',
    words: wordsOf('secaudit', 'security_audit', {
      bySeverity: 'vulnerabilities_by_severity',
      skipped: { status: 'security_analysis_complete', reason: 'skipped_due_to_certain_audit_confidence' },
    }),
    certain: ({ confidence }) => confidence === 'certain',
    counters: (_step, progress) => ({ audit_confidence: progress.confidence }),
    settings: ['security_scope', 'threat_level', 'compliance_requirements', 'audit_focus', 'severity_filter'],
    brief: ({ security_scope, threat_level, compliance_requirements, audit_focus, severity_filter }) => [
      security_scope && `Scope of the audit: ${security_scope}`,
      `Threat level: ${threat_level ?? 'medium'}; focus: ${audit_focus ?? 'comprehensive'}`,
      compliance_requirements?.length ? `Frameworks to hold it against: ${compliance_requirements.join(', ')}` : '',
      severity.lowest(severity_filter, 'findings'),
    ],
    requiredActions({ stepNumber, totalSteps }, { audit_focus }, { settings }) {
      const lists = inOrderOf(audit_focus ?? settings.audit_focus);
      const isLast = stepNumber > 1 && stepNumber >= totalSteps;
      const todo = isLast ? lists.slice(stepNumber - 1).flat() : (lists[stepNumber - 1] ?? deeper);
      return isLast ? [...todo, ...conclusion] : todo;
    },
    expert: { role, json: true, fillIn },
  },
});

/** The categories that the expert left out, or left as empty as a form. */
function fillIn({ owasp_assessment: found }: Record<string, unknown>): Record<string, unknown> {
  if (!isRecord(found)) return {};
  const isTold = (value: unknown) => isRecord(value) && Object.keys(value).length > 0;
  const none = { status: 'Not_Applicable', findings: [], recommendations: [] };
  const all = categories.map(name => [name, isTold(found[name]) ? found[name] : none]);
  return { owasp_assessment: { ...found, ...Object.fromEntries(all) } };
}

const byStep: readonly (readonly string[])[] = [
  [
    'Settle the scope: which parts, which data, which attackers, which standards',
    'Map the attack surface: every way in, what it trusts, where trust changes',
    'Read the code at those places, and list the threats to each',
  ],
  [
    'Follow how users and services prove who they are: passwords, tokens, sessions, second factors',
    'Check on every path that rights are checked, and where they could be got around',
    'Look at roles, service accounts and rights in the infrastructure',
  ],
  [
    'Follow input from each way in to where it acts: queries, commands, paths, templates, parsers',
    'Check how sensitive data and keys are stored, sent and encrypted',
    'Check limits on size, rate and cost of requests',
  ],
  [
    'Go through the ten categories of OWASP 2021, and note evidence for each, good or bad',
    'Order what you found by how easily it is used and what it costs',
  ],
  [
    'Check dependencies and their versions for known weaknesses',
    'Check configuration and defaults, and search for secrets in code, settings and history',
    'Check what is logged: enough to notice an attack, nothing that helps one',
  ],
  [
    'Hold the findings against the frameworks that apply, and name the gaps',
    'Say what each finding would mean for the business',
    'Draw up the order in which to close them',
  ],
];

/** Which of them comes right after the scope, where the audit has a focus. */
const firstByFocus = new Map(Object.entries({ owasp: 3, dependencies: 4, infrastructure: 4, compliance: 5 }));

function inOrderOf(focus: unknown): readonly (readonly string[])[] {
  const first = firstByFocus.get(String(focus));
  const [scope = [], ...others] = byStep;
  return first === undefined ? byStep : [scope, ...byStep.slice(first, first + 1), ...others.toSpliced(first - 1, 1)];
}

const deeper = [
  'Look once more at the most severe findings: try to refute each with the code',
  'Look for the same weakness elsewhere',
];

const conclusion = [
  'Check that every finding has a severity, file and line, and a remedy',
  'Set next_step_required to false',
];
