CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0046');
CREATE TABLE attempts (
	job_id TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	status_since DOUBLE NOT NULL, 
	tries INTEGER NOT NULL, 
	dispatch INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, 
	cpu_m BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpu INTEGER NOT NULL, 
	ending TEXT, 
	failure TEXT, 
	decision TEXT, 
	retry_at DOUBLE, 
	message TEXT NOT NULL, named TEXT, 
	CONSTRAINT pk_attempts PRIMARY KEY (job_id, number), 
	CONSTRAINT ck_attempts_number CHECK (number >= 1), 
	CONSTRAINT ck_attempts_counts CHECK (tries >= 0 AND dispatch >= 0), 
	CONSTRAINT fk_attempts_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "attempts" VALUES('01m8b9spt1bkwhtnqfyrpxenej',1,'TERMINATED',1795675708.33652,0,1,1.79567570822566604615e+09,1.79567570832686448098e+09,1.79567570832715129851e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9sqqh9kxe5g0xpbg50e29',1,'ERROR',1.79567570919963598254e+09,0,1,1.79567570916982555389e+09,1.7956757091965825558e+09,1.79567570919671273235e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00013017654418945312,"failed_at":1795675709.1967127}','{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":1.0,"limits":[{"name":"globalMaxRetries","used":0,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":0,"limit":3}]}',1.79567571019671273226e+09,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9sqqh9kxe5g0xpbg50e29',2,'ERROR',1.79567571021679806713e+09,0,1,1.79567571020928215975e+09,1.7956757102154352665e+09,1.79567571021588444704e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00044918060302734375,"failed_at":1795675710.2158844}','{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":2.0,"limits":[{"name":"globalMaxRetries","used":1,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":1,"limit":3}]}',1.79567571221588444707e+09,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9sqqh9kxe5g0xpbg50e29',3,'ERROR',1.79567571223175239565e+09,0,1,1.79567571222072577472e+09,1.7956757122297422886e+09,1.79567571222987556458e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.00013327598571777344,"failed_at":1795675712.2298756}','{"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"counter":"infra/exit-3-c1f5d0f8","delay_s":4.0,"limits":[{"name":"globalMaxRetries","used":2,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":2,"limit":3}]}',1.79567571622987556456e+09,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9sqqh9kxe5g0xpbg50e29',4,'ERROR',1.79567571625938487058e+09,0,1,1.79567571624409389493e+09,1.79567571625418758397e+09,1.79567571625433063508e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":3,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0001430511474609375,"failed_at":1795675716.2543306}','{"action":"Fail","code":"fail_policy_limit","reason":"policy retry limit exceeded (3/3)","policy":"infra","rule":"exit-3-c1f5d0f8","rule_index":0,"policy_revision":1,"limits":[{"name":"globalMaxRetries","used":3,"limit":null},{"name":"infra/exit-3-c1f5d0f8","used":3,"limit":3}]}',NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9t04153wzj044p748hp23-sweep-0',1,'TERMINATED',1.79567571788855171203e+09,0,1,1.7956757177986085415e+09,1.79567571788695764549e+09,1.79567571788797664643e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9t04153wzj044p748hp23-sweep-1',1,'TERMINATED',1.7956757179200050831e+09,0,1,1.7956757177986085415e+09,1.79567571791439390188e+09,1.79567571791884613039e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9t04153wzj044p748hp23-sweep-2',1,'TERMINATED',1.79567571789588379858e+09,0,1,1.7956757177986085415e+09,1.79567571789474964144e+09,1.79567571789552378651e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9t1j2t4y7z155je8vajw5',1,'TERMINATED',1.79567571930042624468e+09,0,1,1.79567571923466157918e+09,1.79567571929087948798e+09,1.79567571929106855393e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'',NULL);
INSERT INTO "attempts" VALUES('01m8b9t35ztzcbka01zjn5jxth',1,'TERMINATED',1.79567572103818798062e+09,0,1,1.79567572093791460985e+09,1.79567572099049186707e+09,1.79567572103818798062e+09,1000,0,0,'Cancelled',NULL,NULL,NULL,'deleted by its job set',NULL);
INSERT INTO "attempts" VALUES('01m8b9t35zy58h8j155re6nr9s',1,'ERROR',1.79567572099049186707e+09,0,1,1.79567572093791460985e+09,1.79567572098811912531e+09,1.79567572099049186707e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0010602474212646484,"failed_at":1795675720.9891794}',NULL,NULL,'BackoffLimitExceeded: Job has reached the specified backoff limit',NULL);
INSERT INTO "attempts" VALUES('01m8b9t35zy58h8j155re6nr9s',2,'ERROR',1.79567572108248901365e+09,0,1,1.79567572099049186707e+09,1.79567572104679036137e+09,1.79567572108248901365e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0005218982696533203,"failed_at":1795675721.0473123}',NULL,NULL,'BackoffLimitExceeded: Job has reached the specified backoff limit',NULL);
INSERT INTO "attempts" VALUES('01m8b9t38n795j15nk23ceh499',1,'TERMINATED',1.79567572112042307848e+09,0,2,1.79567572098170161239e+09,1.79567572111044430728e+09,1.79567572112042307848e+09,1000,0,0,'Succeeded',NULL,NULL,NULL,'Reached expected number of succeeded pods',NULL);
INSERT INTO "attempts" VALUES('01m8b9t35ztzcbka01zjn5jxth',2,'ERROR',1.79567572108248901365e+09,0,1,1.79567572103818798062e+09,1.79567572106882524492e+09,1.79567572108248901365e+09,1000,0,0,'Failed','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.002203226089477539,"failed_at":1795675721.0710285}',NULL,NULL,'BackoffLimitExceeded: Job has reached the specified backoff limit',NULL);
INSERT INTO "attempts" VALUES('01m8b9t4ky24w5pxhpcb1tgm9x',1,'RUNNING',1.79567572243244647977e+09,0,1,1.79567572236636686325e+09,1.79567572241128373144e+09,NULL,1000,0,0,NULL,NULL,NULL,NULL,'',NULL);
CREATE TABLE audit (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DOUBLE NOT NULL, 
	actor TEXT NOT NULL, 
	act TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	name TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	request_id TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	detail TEXT NOT NULL
);
INSERT INTO "audit" VALUES(1,1.79567570726385760306e+09,'root','create','retry-policy','infra','127.0.0.1','3e9618ad18327d43','accepted','');
INSERT INTO "audit" VALUES(2,1.79567570731693792345e+09,'root','create','notifier','pager','127.0.0.1','78ce167fcfac7d67','accepted','');
INSERT INTO "audit" VALUES(3,1.79567570733837580682e+09,'root','create','queue','gpu','127.0.0.1','c4b18e3e69142f85','accepted','');
INSERT INTO "audit" VALUES(4,1.79567570735262417797e+09,'root','create','failure-category','cuda','127.0.0.1','bb365ad84f220e36','accepted','');
INSERT INTO "audit" VALUES(5,1.79567570822284626962e+09,'root','create','job','01m8b9spt1bkwhtnqfyrpxenej','127.0.0.1','905d3d8a72d6fa54','accepted','1 job');
INSERT INTO "audit" VALUES(6,1.79567570916817450523e+09,'root','create','job','01m8b9sqqh9kxe5g0xpbg50e29','127.0.0.1','497b4c73933790c3','accepted','1 job');
INSERT INTO "audit" VALUES(7,1.79567571775945234303e+09,'root','create','array','01m8b9t04153wzj044p748hp23','127.0.0.1','1e2fafba98d749a8','accepted','1 array');
INSERT INTO "audit" VALUES(8,1.7956757192292938232e+09,'root','create','job','01m8b9t1j2t4y7z155je8vajw5','127.0.0.1','d08314a455d43925','accepted','1 job');
INSERT INTO "audit" VALUES(9,1.79567572086712169644e+09,'root','create','job-set','01m8b9t35z3yza7b5fg4pnma73','127.0.0.1','b5235b660d6305c8','accepted','2 jobs');
INSERT INTO "audit" VALUES(10,1.79567572095132160182e+09,'root','create','job','01m8b9t38n795j15nk23ceh499','127.0.0.1','15a99b7b28ab4c74','accepted','1 job');
INSERT INTO "audit" VALUES(11,1.79567572236490130424e+09,'root','create','job','01m8b9t4ky24w5pxhpcb1tgm9x','127.0.0.1','52ae0b239e24dad6','accepted','1 job');
INSERT INTO "audit" VALUES(12,1.7956757234939527512e+09,'root','create','job','01m8b9t5qk8jb2vyn8s1bgwtm9','127.0.0.1','11f07886441b2e8d','accepted','1 job');
INSERT INTO "audit" VALUES(13,1.79567572453896403313e+09,'root','create','job','01m8b9t6qx5qsxe26jnn06d764','127.0.0.1','022ad72b1a7fbe21','accepted','1 job');
INSERT INTO "audit" VALUES(14,1.79567572541909360878e+09,'root','hold','job','01m8b9t6qx5qsxe26jnn06d764','127.0.0.1','7d29794cc6b89f6d','accepted','');
INSERT INTO "audit" VALUES(15,1.79567572651147937777e+09,'root','create','token','ci','127.0.0.1','0b5b60536ad834fa','accepted','for root as admin');
CREATE TABLE entries (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	body TEXT NOT NULL, 
	submitted_by TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (kind, name)
);
INSERT INTO "entries" VALUES('failure-category','cuda','{"version":1,"spec":{"name":"cuda","rules":[{"termination_message":"CUDA error"}]}}','root');
INSERT INTO "entries" VALUES('notifier','pager','{"version":1,"spec":{"command":["/usr/bin/true"],"medium":"command","name":"pager"}}','root');
INSERT INTO "entries" VALUES('queue','gpu','{"version":1,"spec":{"name":"gpu","retry_policies":["infra"],"weight":2.0}}','root');
INSERT INTO "entries" VALUES('token','ci','{"version":1,"spec":{"created_at":1795675726.5114794,"created_by":"root","digest":"2de3dec218da75f0d6558f1629a1aafd26f4dd32bd785bf46286a4e64086421c","id":"6ac2ee2ddf2a","name":"ci","role":"admin","scopes":[{"kind":"job","rights":["submit"]}],"uid":0,"user":"root"}}','');
CREATE TABLE discards (
	place TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	CONSTRAINT pk_discards PRIMARY KEY (place, job_id)
)
 WITHOUT ROWID

;
CREATE TABLE endpoints (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	system TEXT NOT NULL, 
	name TEXT NOT NULL, 
	address TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	job_name TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	metadata TEXT NOT NULL, 
	until DOUBLE, 
	CONSTRAINT uq_endpoints_id UNIQUE (id), 
	CONSTRAINT fk_endpoints_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE TABLE events (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	job_id TEXT, 
	job_seq INTEGER, 
	type TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	at DOUBLE NOT NULL, 
	data TEXT NOT NULL, group_name TEXT, submitted_by TEXT, submitter_uid BIGINT, queue TEXT, 
	CONSTRAINT fk_events_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE, 
	CONSTRAINT uq_events_job_id_job_seq UNIQUE (job_id, job_seq)
);
INSERT INTO "events" VALUES(1,NULL,NULL,'policy.created',1,1.79567570726385760306e+09,'{"name":"infra","revision":1}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(2,NULL,NULL,'operator.acted',1,1.79567570726385760306e+09,'{"actor":"root","action":"create","kind":"retry-policy","name":"infra","origin":"127.0.0.1","request_id":"3e9618ad18327d43"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(3,NULL,NULL,'notifier.created',1,1.79567570731693792345e+09,'{"name":"pager"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(4,NULL,NULL,'operator.acted',1,1.79567570731693792345e+09,'{"actor":"root","action":"create","kind":"notifier","name":"pager","origin":"127.0.0.1","request_id":"78ce167fcfac7d67"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(5,NULL,NULL,'queue.created',1,1.79567570733837580682e+09,'{"name":"gpu"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(6,NULL,NULL,'operator.acted',1,1.79567570733837580682e+09,'{"actor":"root","action":"create","kind":"queue","name":"gpu","origin":"127.0.0.1","request_id":"c4b18e3e69142f85"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(7,NULL,NULL,'category.created',1,1.79567570735262417797e+09,'{"name":"cuda"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(8,NULL,NULL,'operator.acted',1,1.79567570735262417797e+09,'{"actor":"root","action":"create","kind":"failure-category","name":"cuda","origin":"127.0.0.1","request_id":"bb365ad84f220e36"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(9,'01m8b9spt1bkwhtnqfyrpxenej',1,'job.submitted',1,1.79567570822566604615e+09,'{"name":"good","queue":"default","cpu_m":1000,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(10,'01m8b9spt1bkwhtnqfyrpxenej',2,'job.started',1,1.79567570823997139928e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(11,'01m8b9spt1bkwhtnqfyrpxenej',3,'attempt.ended',1,1795675708.33652,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675708.3268645,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(12,'01m8b9spt1bkwhtnqfyrpxenej',4,'job.succeeded',1,1795675708.33652,'{"attempt":1,"ended_at":1795675708.3271513}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(13,'01m8b9sqqh9kxe5g0xpbg50e29',1,'job.submitted',1,1.79567570916982555389e+09,'{"name":"bad","queue":"default","cpu_m":1000,"submitted_by":"root","group":"flows/7"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(14,'01m8b9sqqh9kxe5g0xpbg50e29',2,'job.started',1,1.79567570917874193194e+09,'{"attempt":1,"places":[["local","vm",1]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(15,'01m8b9sqqh9kxe5g0xpbg50e29',3,'attempt.ended',1,1.79567570919963598254e+09,'{"attempt":1,"ending":"Failed","status":"ERROR","started_at":1795675709.1965826,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(16,'01m8b9sqqh9kxe5g0xpbg50e29',4,'failure.decided',1,1.79567570919963598254e+09,'{"attempt":1,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":1.0,"retry_at":1795675710.1967127,"limits":[["globalMaxRetries",0,null],["infra/exit-3-c1f5d0f8",0,3]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(17,'01m8b9sqqh9kxe5g0xpbg50e29',5,'job.retry_scheduled',1,1.79567570919963598254e+09,'{"attempt":1,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":1.0,"retry_at":1795675710.1967127,"counter":"infra/exit-3-c1f5d0f8"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(18,'01m8b9sqqh9kxe5g0xpbg50e29',6,'job.queued',1,1.79567571020928215975e+09,'{"attempt":1}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(19,'01m8b9sqqh9kxe5g0xpbg50e29',7,'job.started',1,1.79567571020928215975e+09,'{"attempt":2,"places":[["local","vm",1]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(20,'01m8b9sqqh9kxe5g0xpbg50e29',8,'attempt.ended',1,1.79567571021679806713e+09,'{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675710.2154353,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(21,'01m8b9sqqh9kxe5g0xpbg50e29',9,'failure.decided',1,1.79567571021679806713e+09,'{"attempt":2,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":2.0,"retry_at":1795675712.2158844,"limits":[["globalMaxRetries",1,null],["infra/exit-3-c1f5d0f8",1,3]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(22,'01m8b9sqqh9kxe5g0xpbg50e29',10,'job.retry_scheduled',1,1.79567571021679806713e+09,'{"attempt":2,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":2.0,"retry_at":1795675712.2158844,"counter":"infra/exit-3-c1f5d0f8"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(23,'01m8b9sqqh9kxe5g0xpbg50e29',11,'job.queued',1,1.79567571222072577472e+09,'{"attempt":2}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(24,'01m8b9sqqh9kxe5g0xpbg50e29',12,'job.started',1,1.79567571222072577472e+09,'{"attempt":3,"places":[["local","vm",1]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(25,'01m8b9sqqh9kxe5g0xpbg50e29',13,'attempt.ended',1,1.79567571223175239565e+09,'{"attempt":3,"ending":"Failed","status":"ERROR","started_at":1795675712.2297423,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(26,'01m8b9sqqh9kxe5g0xpbg50e29',14,'failure.decided',1,1.79567571223175239565e+09,'{"attempt":3,"action":"Retry","code":"retry","reason":"matched rule: Retry","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":4.0,"retry_at":1795675716.2298756,"limits":[["globalMaxRetries",2,null],["infra/exit-3-c1f5d0f8",2,3]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(27,'01m8b9sqqh9kxe5g0xpbg50e29',15,'job.retry_scheduled',1,1.79567571223175239565e+09,'{"attempt":3,"reason":"exit code 3; retried by rule exit-3-c1f5d0f8","policy":"infra","rule":"exit-3-c1f5d0f8","delay_s":4.0,"retry_at":1795675716.2298756,"counter":"infra/exit-3-c1f5d0f8"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(28,'01m8b9sqqh9kxe5g0xpbg50e29',16,'job.queued',1,1.79567571624409389493e+09,'{"attempt":3}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(29,'01m8b9sqqh9kxe5g0xpbg50e29',17,'job.started',1,1.79567571624409389493e+09,'{"attempt":4,"places":[["local","vm",1]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(30,'01m8b9sqqh9kxe5g0xpbg50e29',18,'attempt.ended',1,1.79567571625938487058e+09,'{"attempt":4,"ending":"Failed","status":"ERROR","started_at":1795675716.2541876,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":3,"rank":0,"node":"vm","executor":"local"}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(31,'01m8b9sqqh9kxe5g0xpbg50e29',19,'failure.decided',1,1.79567571625938487058e+09,'{"attempt":4,"action":"Fail","code":"fail_policy_limit","reason":"policy retry limit exceeded (3/3)","policy":"infra","rule":"exit-3-c1f5d0f8","policy_revision":1,"delay_s":0.0,"limits":[["globalMaxRetries",3,null],["infra/exit-3-c1f5d0f8",3,3]]}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(32,'01m8b9sqqh9kxe5g0xpbg50e29',20,'job.failed',1,1.79567571625938487058e+09,'{"attempt":4,"reason":"exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)","cause":"kernel_nonzero_exit","exit_code":3,"code":"fail_policy_limit","policy":"infra","rule":"exit-3-c1f5d0f8","ended_at":1795675716.2543306}','flows/7',NULL,NULL,NULL);
INSERT INTO "events" VALUES(33,NULL,NULL,'notification.delivered',1,1.79567571630470442772e+09,'{"id":"msg_079a224e80eba2b4ef06a2f4","to":"pager","about":"01m8b9sqqh9kxe5g0xpbg50e29","tries":1}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(34,'01m8b9t04153wzj044p748hp23-sweep-0',1,'job.submitted',1,1.7956757177986085415e+09,'{"name":"sweep-0","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(35,'01m8b9t04153wzj044p748hp23-sweep-1',1,'job.submitted',1,1.7956757177986085415e+09,'{"name":"sweep-1","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","array_index":1,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(36,'01m8b9t04153wzj044p748hp23-sweep-2',1,'job.submitted',1,1.7956757177986085415e+09,'{"name":"sweep-2","queue":"gpu","cpu_m":1000,"array":"01m8b9t04153wzj044p748hp23","array_index":2,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(37,'01m8b9t04153wzj044p748hp23-sweep-0',2,'job.started',1,1.79567571785739278798e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(38,'01m8b9t04153wzj044p748hp23-sweep-1',2,'job.started',1,1.79567571785739278798e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(39,'01m8b9t04153wzj044p748hp23-sweep-2',2,'job.waiting',1,1.79567571785739278798e+09,'{"reason":"needs 1 cpu, the largest free node has 0"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(40,'01m8b9t04153wzj044p748hp23-sweep-0',3,'attempt.ended',1,1.79567571788855171203e+09,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.8869576,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(41,'01m8b9t04153wzj044p748hp23-sweep-0',4,'job.succeeded',1,1.79567571788855171203e+09,'{"attempt":1,"ended_at":1795675717.8879766}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(42,'01m8b9t04153wzj044p748hp23-sweep-2',3,'job.started',1,1.79567571788855171203e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(43,'01m8b9t04153wzj044p748hp23-sweep-2',4,'attempt.ended',1,1.79567571789588379858e+09,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.8947496,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(44,'01m8b9t04153wzj044p748hp23-sweep-2',5,'job.succeeded',1,1.79567571789588379858e+09,'{"attempt":1,"ended_at":1795675717.8955238}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(45,'01m8b9t04153wzj044p748hp23-sweep-1',3,'attempt.status_changed',1,1.79567571791639852521e+09,'{"attempt":1,"status":"RUNNING"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(46,'01m8b9t04153wzj044p748hp23-sweep-1',4,'attempt.ended',1,1.7956757179200050831e+09,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675717.914394,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(47,'01m8b9t04153wzj044p748hp23-sweep-1',5,'job.succeeded',1,1.7956757179200050831e+09,'{"attempt":1,"ended_at":1795675717.9188461}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(48,NULL,NULL,'array.ended',1,1.7956757179200050831e+09,'{"array":"01m8b9t04153wzj044p748hp23","name":"sweep","outcome":"Succeeded","succeeded":3,"failed":0,"cancelled":0,"reason":"3 of 3 tasks succeeded"}',NULL,'root',0,'gpu');
INSERT INTO "events" VALUES(49,'01m8b9t1j2t4y7z155je8vajw5',1,'job.submitted',1,1.79567571923466157918e+09,'{"name":"pair","queue":"gpu","gang":2,"cpu_m":1000,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(50,'01m8b9t1j2t4y7z155je8vajw5',2,'job.started',1,1.79567571924233102802e+09,'{"attempt":1,"places":[["local","vm",2]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(51,'01m8b9t1j2t4y7z155je8vajw5',3,'attempt.ended',1,1.79567571930042624468e+09,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675719.2908795,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(52,'01m8b9t1j2t4y7z155je8vajw5',4,'job.succeeded',1,1.79567571930042624468e+09,'{"attempt":1,"ended_at":1795675719.2910686}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(53,NULL,NULL,'jobset.created',1,1.79567572089540767668e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","jobs":2,"submitted_by":"root"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(54,'01m8b9t35ztzcbka01zjn5jxth',1,'job.submitted',1,1.79567572089540767668e+09,'{"name":"train-w-0","queue":"default","cpu_m":1000,"job_set":"01m8b9t35z3yza7b5fg4pnma73","replicated_job":"w","submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(55,'01m8b9t35zy58h8j155re6nr9s',1,'job.submitted',1,1.79567572089540767668e+09,'{"name":"train-w-1","queue":"default","cpu_m":1000,"job_set":"01m8b9t35z3yza7b5fg4pnma73","replicated_job":"w","job_index":1,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(56,'01m8b9t35ztzcbka01zjn5jxth',2,'job.queued',1,1.79567572093791460985e+09,'{"attempt":1}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(57,'01m8b9t35zy58h8j155re6nr9s',2,'job.queued',1,1.79567572093791460985e+09,'{"attempt":1}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(58,'01m8b9t35ztzcbka01zjn5jxth',3,'job.started',1,1.79567572093791460985e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(59,'01m8b9t35zy58h8j155re6nr9s',3,'job.started',1,1.79567572093791460985e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(60,'01m8b9t38n795j15nk23ceh499',1,'job.submitted',1,1.79567572098170161239e+09,'{"name":"pods","queue":"default","cpu_m":1000,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(61,'01m8b9t35zy58h8j155re6nr9s',4,'attempt.ended',1,1.79567572099049186707e+09,'{"attempt":1,"ending":"Failed","status":"ERROR","started_at":1795675720.9881191,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(62,'01m8b9t35zy58h8j155re6nr9s',5,'job.set_aside',1,1.79567572099049186707e+09,'{"attempt":1,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(63,NULL,NULL,'jobset.decided',1,1.79567572099049186707e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","job":"train-w-1","restart":0,"job_restart":0,"action":"RestartJobSet","granted":true,"reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)","delay_s":0.0}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(64,NULL,NULL,'jobset.noted',1,1.79567572099049186707e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(65,NULL,NULL,'jobset.noted',1,1.79567572099049186707e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"DefaultFailurePolicy","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(66,'01m8b9t35ztzcbka01zjn5jxth',4,'attempt.status_changed',1,1.79567572099049186707e+09,'{"attempt":1,"status":"TERMINATING"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(67,'01m8b9t35zy58h8j155re6nr9s',6,'job.queued',1,1.79567572099049186707e+09,'{"attempt":2}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(68,'01m8b9t35zy58h8j155re6nr9s',7,'job.started',1,1.79567572099049186707e+09,'{"attempt":2,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(69,'01m8b9t38n795j15nk23ceh499',2,'job.waiting',1,1.7956757210234851837e+09,'{"reason":"needs 1 cpu, the largest free node has 0"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(70,'01m8b9t35ztzcbka01zjn5jxth',5,'attempt.ended',1,1.79567572103818798062e+09,'{"attempt":1,"ending":"Cancelled","status":"TERMINATED","started_at":1795675720.9904919}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(71,'01m8b9t35ztzcbka01zjn5jxth',6,'job.queued',1,1.79567572103818798062e+09,'{"attempt":2}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(72,'01m8b9t35ztzcbka01zjn5jxth',7,'job.started',1,1.79567572103818798062e+09,'{"attempt":2,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(73,'01m8b9t35zy58h8j155re6nr9s',8,'attempt.ended',1,1.79567572108248901365e+09,'{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675721.0467904,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(74,'01m8b9t35zy58h8j155re6nr9s',9,'job.set_aside',1,1.79567572108248901365e+09,'{"attempt":2,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(75,'01m8b9t35ztzcbka01zjn5jxth',8,'attempt.ended',1,1.79567572108248901365e+09,'{"attempt":2,"ending":"Failed","status":"ERROR","started_at":1795675721.0688252,"cause":"kernel_nonzero_exit","conditions":["AppError"],"exit_code":1,"rank":0,"node":"vm","executor":"local"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(76,'01m8b9t35ztzcbka01zjn5jxth',9,'job.set_aside',1,1.79567572108248901365e+09,'{"attempt":2,"state":"Waiting","reason":"failed: BackoffLimitExceeded: Job has reached the specified backoff limit; its job set goes on"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(77,NULL,NULL,'jobset.decided',1,1.79567572108248901365e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","job":"train-w-0","restart":1,"job_restart":0,"action":"RestartJobSet","granted":false,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","delay_s":0.0}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(78,NULL,NULL,'jobset.noted',1,1.79567572108248901365e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Warning","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(79,NULL,NULL,'jobset.noted',1,1.79567572108248901365e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","type":"Normal","reason":"JobSetFailed","message":"jobset failed"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(80,NULL,NULL,'jobset.ended',1,1.79567572108248901365e+09,'{"job_set":"01m8b9t35z3yza7b5fg4pnma73","name":"train","outcome":"Failed","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}',NULL,'root',0,'default');
INSERT INTO "events" VALUES(81,'01m8b9t35ztzcbka01zjn5jxth',10,'job.failed',1,1.79567572108248901365e+09,'{"attempt":2,"reason":"BackoffLimitExceeded: Job has reached the specified backoff limit"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(82,'01m8b9t35zy58h8j155re6nr9s',10,'job.failed',1,1.79567572108248901365e+09,'{"attempt":2,"reason":"BackoffLimitExceeded: Job has reached the specified backoff limit"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(83,'01m8b9t38n795j15nk23ceh499',3,'job.started',1,1.79567572108248901365e+09,'{"attempt":1,"dispatch":2,"places":[["local","vm",2]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(84,'01m8b9t38n795j15nk23ceh499',4,'attempt.ended',1,1.79567572112042307848e+09,'{"attempt":1,"ending":"Succeeded","status":"TERMINATED","started_at":1795675721.1104443,"exit_code":0}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(85,'01m8b9t38n795j15nk23ceh499',5,'job.succeeded',1,1.79567572112042307848e+09,'{"attempt":1,"ended_at":1795675721.120423}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(86,'01m8b9t4ky24w5pxhpcb1tgm9x',1,'job.submitted',1,1.79567572236636686325e+09,'{"name":"long","queue":"default","cpu_m":1000,"submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(87,'01m8b9t4ky24w5pxhpcb1tgm9x',2,'job.started',1,1.79567572239262151717e+09,'{"attempt":1,"places":[["local","vm",1]]}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(88,'01m8b9t4ky24w5pxhpcb1tgm9x',3,'attempt.status_changed',1,1.79567572243244647977e+09,'{"attempt":1,"status":"RUNNING"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(89,'01m8b9t5qk8jb2vyn8s1bgwtm9',1,'job.submitted',1,1.79567572350730419159e+09,'{"name":"after","queue":"default","cpu_m":1000,"waits":"waits for job long to succeed","submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(90,'01m8b9t6qx5qsxe26jnn06d764',1,'job.submitted',1,1.79567572454186296466e+09,'{"name":"held","queue":"default","cpu_m":1000,"waits":"waits for job long to end","submitted_by":"root"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(91,'01m8b9t6qx5qsxe26jnn06d764',2,'operator.acted',1,1.79567572541909360878e+09,'{"actor":"root","action":"hold","kind":"job","name":"01m8b9t6qx5qsxe26jnn06d764","origin":"127.0.0.1","request_id":"7d29794cc6b89f6d"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(92,'01m8b9t6qx5qsxe26jnn06d764',3,'job.held',1,1.79567572544075703625e+09,'{"attempt":0,"reason":"held by a user"}',NULL,NULL,NULL,NULL);
INSERT INTO "events" VALUES(93,NULL,NULL,'operator.acted',1,1.79567572651147937777e+09,'{"actor":"root","action":"create","kind":"token","name":"ci","origin":"127.0.0.1","request_id":"0b5b60536ad834fa","detail":"for root as admin"}',NULL,NULL,NULL,NULL);
CREATE TABLE history (
	kind TEXT NOT NULL, 
	id TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	phase TEXT NOT NULL, 
	from_status TEXT NOT NULL, 
	to_status TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	error_code TEXT NOT NULL, 
	message TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	steps TEXT NOT NULL, 
	CONSTRAINT pk_history PRIMARY KEY (kind, id, seq), 
	CONSTRAINT ck_history_merged CHECK (attempts >= 1)
)
 WITHOUT ROWID

;
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567570823997139928e+09,1.79567570823997139928e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567570823997139928e+09,1.79567570823997139928e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567570823997139928e+09,1.79567570823997139928e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567570823997139928e+09,1.79567570823997139928e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1795675708.33652,1795675708.33652,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',5,'DetectCompletion','RUNNING','TERMINATING','SUCCESS',1795675708.33652,1795675708.33652,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9spt1bkwhtnqfyrpxenej/1',6,'PromoteToTerminated','TERMINATING','TERMINATED','SUCCESS',1795675708.33652,1795675708.33652,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567570917874193194e+09,1.79567570917874193194e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567570917874193194e+09,1.79567570917874193194e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567570917874193194e+09,1.79567570917874193194e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567570917874193194e+09,1.79567570917874193194e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567570919963598254e+09,1.79567570919963598254e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',5,'DetectFailure','RUNNING','TERMINATING','SUCCESS',1.79567570919963598254e+09,1.79567570919963598254e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/1',6,'PromoteToTerminated','TERMINATING','ERROR','SUCCESS',1.79567570919963598254e+09,1.79567570919963598254e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571020928215975e+09,1.79567571020928215975e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571020928215975e+09,1.79567571020928215975e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571020928215975e+09,1.79567571020928215975e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571020928215975e+09,1.79567571020928215975e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571021679806713e+09,1.79567571021679806713e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',5,'DetectFailure','RUNNING','TERMINATING','SUCCESS',1.79567571021679806713e+09,1.79567571021679806713e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/2',6,'PromoteToTerminated','TERMINATING','ERROR','SUCCESS',1.79567571021679806713e+09,1.79567571021679806713e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571222072577472e+09,1.79567571222072577472e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571222072577472e+09,1.79567571222072577472e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571222072577472e+09,1.79567571222072577472e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571222072577472e+09,1.79567571222072577472e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571223175239565e+09,1.79567571223175239565e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',5,'DetectFailure','RUNNING','TERMINATING','SUCCESS',1.79567571223175239565e+09,1.79567571223175239565e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/3',6,'PromoteToTerminated','TERMINATING','ERROR','SUCCESS',1.79567571223175239565e+09,1.79567571223175239565e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571624409389493e+09,1.79567571624409389493e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571624409389493e+09,1.79567571624409389493e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571624409389493e+09,1.79567571624409389493e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571624409389493e+09,1.79567571624409389493e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571625938487058e+09,1.79567571625938487058e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',5,'DetectFailure','RUNNING','TERMINATING','SUCCESS',1.79567571625938487058e+09,1.79567571625938487058e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9sqqh9kxe5g0xpbg50e29/4',6,'PromoteToTerminated','TERMINATING','ERROR','SUCCESS',1.79567571625938487058e+09,1.79567571625938487058e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',5,'DetectCompletion','RUNNING','TERMINATING','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-0/1',6,'PromoteToTerminated','TERMINATING','TERMINATED','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571785739278798e+09,1.79567571785739278798e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571791639852521e+09,1.79567571791639852521e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',5,'DetectCompletion','RUNNING','TERMINATING','SUCCESS',1.7956757179200050831e+09,1.7956757179200050831e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-1/1',6,'PromoteToTerminated','TERMINATING','TERMINATED','SUCCESS',1.7956757179200050831e+09,1.7956757179200050831e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',0,'ScheduleAttempts','PENDING','PENDING','SKIPPED',1.79567571785739278798e+09,1.79567571785739278798e+09,'','needs 1 cpu, the largest free node has 0',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',1,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',2,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',3,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',4,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571788855171203e+09,1.79567571788855171203e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',5,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571789588379858e+09,1.79567571789588379858e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',6,'DetectCompletion','RUNNING','TERMINATING','SUCCESS',1.79567571789588379858e+09,1.79567571789588379858e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t04153wzj044p748hp23-sweep-2/1',7,'PromoteToTerminated','TERMINATING','TERMINATED','SUCCESS',1.79567571789588379858e+09,1.79567571789588379858e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567571924233102802e+09,1.79567571924233102802e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567571924233102802e+09,1.79567571924233102802e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567571924233102802e+09,1.79567571924233102802e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567571924233102802e+09,1.79567571924233102802e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567571930042624468e+09,1.79567571930042624468e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',5,'DetectCompletion','RUNNING','TERMINATING','SUCCESS',1.79567571930042624468e+09,1.79567571930042624468e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t1j2t4y7z155je8vajw5/1',6,'PromoteToTerminated','TERMINATING','TERMINATED','SUCCESS',1.79567571930042624468e+09,1.79567571930042624468e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35ztzcbka01zjn5jxth/1',0,'PromotePodsToRunning','PENDING','RUNNING','SUCCESS',1.79567572099049186707e+09,1.79567572099049186707e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35ztzcbka01zjn5jxth/1',1,'StopPods','RUNNING','TERMINATING','SUCCESS',1.79567572099049186707e+09,1.79567572099049186707e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35ztzcbka01zjn5jxth/1',2,'EndPods','TERMINATING','TERMINATED','SUCCESS',1.79567572103818798062e+09,1.79567572103818798062e+09,'','deleted by its job set',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35ztzcbka01zjn5jxth/2',0,'EndPods','PENDING','ERROR','SUCCESS',1.79567572108248901365e+09,1.79567572108248901365e+09,'','BackoffLimitExceeded: Job has reached the specified backoff limit',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35zy58h8j155re6nr9s/1',0,'EndPods','PENDING','ERROR','SUCCESS',1.79567572099049186707e+09,1.79567572099049186707e+09,'','BackoffLimitExceeded: Job has reached the specified backoff limit',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t35zy58h8j155re6nr9s/2',0,'EndPods','PENDING','ERROR','SUCCESS',1.79567572108248901365e+09,1.79567572108248901365e+09,'','BackoffLimitExceeded: Job has reached the specified backoff limit',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t38n795j15nk23ceh499/1',0,'EndPods','PENDING','TERMINATED','SUCCESS',1.79567572112042307848e+09,1.79567572112042307848e+09,'','Reached expected number of succeeded pods',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t4ky24w5pxhpcb1tgm9x/1',0,'ScheduleAttempts','PENDING','SCHEDULED','SUCCESS',1.79567572239262151717e+09,1.79567572239262151717e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t4ky24w5pxhpcb1tgm9x/1',1,'PrepareAttempts','SCHEDULED','PREPARING','SUCCESS',1.79567572239262151717e+09,1.79567572239262151717e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t4ky24w5pxhpcb1tgm9x/1',2,'PromoteToPrepared','PREPARING','PREPARED','SUCCESS',1.79567572239262151717e+09,1.79567572239262151717e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t4ky24w5pxhpcb1tgm9x/1',3,'StartAttempts','PREPARED','CREATING','SUCCESS',1.79567572239262151717e+09,1.79567572239262151717e+09,'','',1,'');
INSERT INTO "history" VALUES('attempt','01m8b9t4ky24w5pxhpcb1tgm9x/1',4,'PromoteToRunning','CREATING','RUNNING','SUCCESS',1.79567572243244647977e+09,1.79567572243244647977e+09,'','',1,'');
CREATE TABLE idempotency (
	"key" TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	job_ids TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	CONSTRAINT pk_idempotency PRIMARY KEY ("key")
);
INSERT INTO "idempotency" VALUES('6e6e634db481f4b9b3de282be4b3030c','eda74cdf8e6cc73d760f9e43e81151fb5fb8bed2f5a5875b818c02187625b1b0','["01m8b9spt1bkwhtnqfyrpxenej"]',1.79567570822566604615e+09);
INSERT INTO "idempotency" VALUES('b45fa55da0af9dc8b781c3f5c896742f','f68548274521c3c2a5207dd7960d4773570653d4b8e02b710082a8699d81db74','["01m8b9sqqh9kxe5g0xpbg50e29"]',1.79567570916982555389e+09);
INSERT INTO "idempotency" VALUES('86b5a1620eb6c4e7cacb271e9d5ca237','a1a126c94bd6f088dcbda293cd45f0d5baae1ca7c496ca1e9947263c260de315','["01m8b9t04153wzj044p748hp23"]',1.79567571776180529593e+09);
INSERT INTO "idempotency" VALUES('e589c14da9353d67f0031f3275e850cb','29806ed16a5c8c0bf5e892efa2d4bab39ebba493eb9e110d34dec5b43ac95e97','["01m8b9t1j2t4y7z155je8vajw5"]',1.79567571923466157918e+09);
INSERT INTO "idempotency" VALUES('6e74b81f6b39f8d2b4c8bd92db521577','c0e288c3e2d2510adddc50e35bca6195ff9072d249ec914f51152867cd810f90','["01m8b9t35ztzcbka01zjn5jxth","01m8b9t35zy58h8j155re6nr9s"]',1.79567572089540767668e+09);
INSERT INTO "idempotency" VALUES('fa297c17cfabc5d934c1f203d081864e','06fcd4a862003bf52bc236f57324c737ee9fb4ce3b283332249509811da7189e','["01m8b9t38n795j15nk23ceh499"]',1.79567572098170161239e+09);
INSERT INTO "idempotency" VALUES('90756bb53d197d9616c644a6172fbb7a','144a3bc8f3a3f4a785947fdeed82026fa97561b07bda25dc481ebf076b7ff60c','["01m8b9t4ky24w5pxhpcb1tgm9x"]',1.79567572236636686325e+09);
INSERT INTO "idempotency" VALUES('e3618db3fef4c5d5ca34c20c5ec9d28d','da45a2ff321cbf246430eb8adf15c4a6506ee35416f5123aad236c80e81bb1d0','["01m8b9t5qk8jb2vyn8s1bgwtm9"]',1.79567572350730419159e+09);
INSERT INTO "idempotency" VALUES('4b34726701a3f4297c08ef96bee36490','06a2e6a81a97d3b02bcfdadedd37fede8c506c8bde6fb25d0a6a59a18773067e','["01m8b9t6qx5qsxe26jnn06d764"]',1.79567572454186296466e+09);
CREATE TABLE intake (
	seq INTEGER NOT NULL, 
	queue TEXT NOT NULL, 
	submitted_by TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	count INTEGER NOT NULL, 
	CONSTRAINT pk_intake PRIMARY KEY (seq)
);
CREATE TABLE job_labels (
	job_id TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_job_labels PRIMARY KEY (job_id, "key"), 
	CONSTRAINT fk_job_labels_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "job_labels" VALUES('01m8b9t35ztzcbka01zjn5jxth','jobset.sigs.k8s.io/jobset-name','train');
INSERT INTO "job_labels" VALUES('01m8b9t35zy58h8j155re6nr9s','jobset.sigs.k8s.io/jobset-name','train');
INSERT INTO "job_labels" VALUES('01m8b9t35ztzcbka01zjn5jxth','jobset.sigs.k8s.io/replicatedjob-name','w');
INSERT INTO "job_labels" VALUES('01m8b9t35zy58h8j155re6nr9s','jobset.sigs.k8s.io/replicatedjob-name','w');
INSERT INTO "job_labels" VALUES('01m8b9sqqh9kxe5g0xpbg50e29','team','nlp');
CREATE TABLE jobs (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	queue TEXT NOT NULL, 
	priority BIGINT NOT NULL, 
	submitted_at DOUBLE NOT NULL, 
	spec BLOB NOT NULL, 
	gang INTEGER NOT NULL, 
	cpu_m BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpu INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	queued_at DOUBLE NOT NULL, 
	retry_at DOUBLE, 
	updated_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, 
	counters TEXT NOT NULL, 
	retries INTEGER NOT NULL, 
	avoid_node TEXT, 
	cancel_requested BOOLEAN NOT NULL, set_id TEXT, replicated_job TEXT, job_index INTEGER, named TEXT, ready_at DOUBLE, met TEXT, avoid_devices TEXT, submitted_by TEXT DEFAULT '' NOT NULL, submitter_uid BIGINT, group_name TEXT, kind TEXT DEFAULT 'gang' NOT NULL, avoid_nodes TEXT, tried TEXT, parent TEXT, 
	CONSTRAINT ck_jobs_counts CHECK (attempt >= 0 AND retries >= 0), 
	CONSTRAINT ck_jobs_gang CHECK (gang >= 1), 
	CONSTRAINT fk_jobs_spec FOREIGN KEY(spec) REFERENCES specs (digest), 
	CONSTRAINT uq_jobs_id UNIQUE (id)
);
INSERT INTO "jobs" VALUES(1,'01m8b9spt1bkwhtnqfyrpxenej','good','default',0,1.79567570822566604615e+09,X'662264831B1D494B9C1777108DB728DD516BBE4A9021FD5B',1,1000,0,0,'Succeeded','',1,1.79567570822566604615e+09,NULL,1795675708.33652,1.79567570823997139928e+09,1.79567570832715129851e+09,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(2,'01m8b9sqqh9kxe5g0xpbg50e29','bad','default',0,1.79567570916982555389e+09,X'724608F5A2BA7880F7B440E9B15A9557ED8CCFC7FDA01748',1,1000,0,0,'Failed','exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)',4,1.79567571624409389493e+09,NULL,1.79567571625938487058e+09,1.79567570917874193194e+09,1.79567571625433063508e+09,'{"infra/exit-3-c1f5d0f8":3}',3,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,'flows/7','gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(3,'01m8b9t04153wzj044p748hp23-sweep-0','sweep-0','gpu',0,1.7956757177986085415e+09,X'5922CA2FC0FE4A3AAC063CF2FE5022ABE1D8107534E395FF',1,1000,0,0,'Succeeded','',1,1.7956757177986085415e+09,NULL,1.79567571788855171203e+09,1.79567571785739278798e+09,1.79567571788797664643e+09,'{}',0,NULL,0,'01m8b9t04153wzj044p748hp23','',0,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,'01m8b9t04153wzj044p748hp23-sweep-1','sweep-1','gpu',0,1.7956757177986085415e+09,X'7FFD4AEF171A936502BD2DE0BE74831C883A438DBB291F69',1,1000,0,0,'Succeeded','',1,1.7956757177986085415e+09,NULL,1.7956757179200050831e+09,1.79567571785739278798e+09,1.79567571791884613039e+09,'{}',0,NULL,0,'01m8b9t04153wzj044p748hp23','',1,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(5,'01m8b9t04153wzj044p748hp23-sweep-2','sweep-2','gpu',0,1.7956757177986085415e+09,X'9D7142C7BBA261594585BA24C54464C1A66583806F038667',1,1000,0,0,'Succeeded','',1,1.7956757177986085415e+09,NULL,1.79567571789588379858e+09,1.79567571788855171203e+09,1.79567571789552378651e+09,'{}',0,NULL,0,'01m8b9t04153wzj044p748hp23','',2,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,'01m8b9t1j2t4y7z155je8vajw5','pair','gpu',0,1.79567571923466157918e+09,X'48E715881D00576571A26D1F0D9E013B2E344A5EE00961D6',2,1000,0,0,'Succeeded','',1,1.79567571923466157918e+09,NULL,1.79567571930042624468e+09,1.79567571924233102802e+09,1.79567571929106855393e+09,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(7,'01m8b9t35ztzcbka01zjn5jxth','train-w-0','default',0,1.79567572089540767668e+09,X'457158CF6DAE0FE01B4359A881D9B58A08070AFC1178CCDA',1,1000,0,0,'Failed','BackoffLimitExceeded: Job has reached the specified backoff limit',2,1.79567572103818798062e+09,NULL,1.79567572108248901365e+09,1.79567572093791460985e+09,1.79567572108248901365e+09,'{}',0,NULL,0,'01m8b9t35z3yza7b5fg4pnma73','w',0,NULL,NULL,NULL,NULL,'root',0,NULL,'kubejob',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(8,'01m8b9t35zy58h8j155re6nr9s','train-w-1','default',0,1.79567572089540767668e+09,X'457158CF6DAE0FE01B4359A881D9B58A08070AFC1178CCDA',1,1000,0,0,'Failed','BackoffLimitExceeded: Job has reached the specified backoff limit',2,1.79567572099049186707e+09,NULL,1.79567572108248901365e+09,1.79567572093791460985e+09,1.79567572108248901365e+09,'{}',0,NULL,0,'01m8b9t35z3yza7b5fg4pnma73','w',1,NULL,NULL,NULL,NULL,'root',0,NULL,'kubejob',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(9,'01m8b9t38n795j15nk23ceh499','pods','default',0,1.79567572098170161239e+09,X'2772D757CCE8D371345ABCE227E4B6E1BB4C54C291434C5A',1,1000,0,0,'Succeeded','',1,1.79567572098170161239e+09,NULL,1.79567572112042307848e+09,1.79567572108248901365e+09,1.79567572112042307848e+09,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'kubejob',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(10,'01m8b9t4ky24w5pxhpcb1tgm9x','long','default',0,1.79567572236636686325e+09,X'D532DDB49776BC4E5D50DA48938C9EC367FF48768404028B',1,1000,0,0,'Running','',1,1.79567572236636686325e+09,NULL,1.79567572239262151717e+09,1.79567572239262151717e+09,NULL,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(11,'01m8b9t5qk8jb2vyn8s1bgwtm9','after','default',0,1.79567572350730419159e+09,X'E6C9E3E93D567D6BF8EC3B2E6E70E48CF9B6BD521B93A034',1,1000,0,0,'Waiting','waits for job long to succeed',0,1.79567572350730419159e+09,NULL,1.79567572350730419159e+09,NULL,NULL,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(12,'01m8b9t6qx5qsxe26jnn06d764','held','default',0,1.79567572454186296466e+09,X'2979F1BB957108472285ACB41E4EF7347967113D3B814CE6',1,1000,0,0,'Held','held by a user',0,1.79567572454186296466e+09,NULL,1.79567572544075703625e+09,NULL,NULL,'{}',0,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'root',0,NULL,'gang',NULL,NULL,NULL);
CREATE TABLE leadership (
	id INTEGER NOT NULL, 
	epoch BIGINT NOT NULL, 
	owner TEXT NOT NULL, 
	expires_at DOUBLE NOT NULL, as_submitters BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_leadership PRIMARY KEY (id), 
	CONSTRAINT ck_leadership_one_row CHECK (id = 1)
);
INSERT INTO "leadership" VALUES(1,1,'the holdfast on vm, data directory /srv/holdfast/data (46bc3415), process 14701-6541c4d7',1.79567573604309558871e+09,0);
CREATE TABLE names (
	name TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	digest BLOB NOT NULL, 
	taken_at DOUBLE NOT NULL, 
	CONSTRAINT pk_names PRIMARY KEY (name), 
	CONSTRAINT fk_names_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
)
 WITHOUT ROWID

;
CREATE TABLE nodes (
	executor TEXT NOT NULL, 
	name TEXT NOT NULL, 
	cpu_m BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpu INTEGER NOT NULL, 
	labels TEXT NOT NULL, 
	seen_at DOUBLE NOT NULL, engine TEXT DEFAULT '' NOT NULL, capabilities TEXT DEFAULT '' NOT NULL, named TEXT, devices TEXT DEFAULT '[]' NOT NULL, short TEXT, 
	CONSTRAINT pk_nodes PRIMARY KEY (executor, name)
);
INSERT INTO "nodes" VALUES('local','vm',2000,25276514304,0,'{"kubernetes.io/hostname":"vm","holdfast.dev/memory":"cgroup-v1","holdfast.dev/pids":"cgroup-v1","holdfast.dev/containment":"cgroup-v1"}',1.79567573548835635183e+09,'process','',NULL,'[]',NULL);
CREATE TABLE notifications (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	notifier TEXT NOT NULL, 
	about TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	body TEXT NOT NULL, 
	state TEXT NOT NULL, 
	tries INTEGER NOT NULL, 
	since DOUBLE NOT NULL, 
	next_at DOUBLE NOT NULL, 
	settled_at DOUBLE, 
	error TEXT NOT NULL, 
	CONSTRAINT uq_notifications_id UNIQUE (id)
);
INSERT INTO "notifications" VALUES(1,'msg_079a224e80eba2b4ef06a2f4','pager','01m8b9sqqh9kxe5g0xpbg50e29',1.79567571625938487058e+09,'{"event":"job.failed","kind":"job","id":"01m8b9sqqh9kxe5g0xpbg50e29","name":"bad","at":1795675716.2593849,"state":"Failed","queue":"default","submitted_by":"root","reason":"exit code 3; 3 of 3 retries are used (infra/exit-3-c1f5d0f8)","cause":"kernel_nonzero_exit","failure":"exit code 3","exit_code":3,"attempts":4,"nodes":["vm"],"started_at":1795675709.178742,"submitted_at":1795675709.1698256,"complete":true}','Delivered',1,1.79567571625938487058e+09,1.79567571625938487058e+09,1.79567571630470442772e+09,'');
CREATE TABLE places (
	id TEXT NOT NULL, 
	came_at DOUBLE NOT NULL, 
	left_at DOUBLE, 
	CONSTRAINT pk_places PRIMARY KEY (id)
)
 WITHOUT ROWID

;
CREATE TABLE policies (
	name TEXT NOT NULL, 
	revision INTEGER NOT NULL, submitted_by TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_policies PRIMARY KEY (name), 
	CONSTRAINT fk_policies_name_revision FOREIGN KEY(name, revision) REFERENCES policy_revisions (name, revision)
);
INSERT INTO "policies" VALUES('infra',1,'root');
CREATE TABLE policy_revisions (
	name TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_policy_revisions PRIMARY KEY (name, revision), 
	CONSTRAINT ck_policy_revisions_revision CHECK (revision >= 1)
);
INSERT INTO "policy_revisions" VALUES('infra',1,'{"version":1,"spec":{"name":"infra","retry_limit":3,"rules":[{"action":"Retry","exit_codes":{"operator":"In","values":[3]},"name":"exit-3-c1f5d0f8"}]}}');
CREATE TABLE quarantine (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	since DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_quarantine PRIMARY KEY (id)
)
 WITHOUT ROWID

;
CREATE TABLE requests (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	kind TEXT NOT NULL, 
	job_ids TEXT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	actor TEXT NOT NULL, 
	reason TEXT NOT NULL
, payload TEXT DEFAULT '' NOT NULL);
CREATE TABLE reruns (
	root TEXT NOT NULL, 
	task INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	array TEXT NOT NULL, 
	CONSTRAINT pk_reruns PRIMARY KEY (root, task, number), 
	CONSTRAINT fk_reruns_array FOREIGN KEY(array) REFERENCES workloads (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE runs (
	uid TEXT NOT NULL, 
	job_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	dispatch INTEGER NOT NULL, 
	rank INTEGER NOT NULL, 
	status TEXT NOT NULL, 
	status_since DOUBLE NOT NULL, 
	executor TEXT NOT NULL, 
	node TEXT NOT NULL, 
	cpu_m BIGINT NOT NULL, 
	memory BIGINT NOT NULL, 
	gpu INTEGER NOT NULL, 
	started_at DOUBLE, 
	ended_at DOUBLE, 
	outcome TEXT, progress TEXT DEFAULT '' NOT NULL, failure TEXT, decision TEXT, generation INTEGER DEFAULT '1' NOT NULL, named TEXT, devices TEXT, interrupted TEXT, token_digest TEXT, ports TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (uid), 
	CONSTRAINT ck_runs_place CHECK (attempt >= 1 AND dispatch >= 0 AND rank >= 0), 
	CONSTRAINT fk_runs_job_id FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "runs" VALUES('01m8b9spt1bkwhtnqfyrpxenej-1-0-1','01m8b9spt1bkwhtnqfyrpxenej',1,1,0,'TERMINATED',1795675708.33652,'local','vm',1000,0,0,1.79567570832686448098e+09,1.79567570832715129851e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675708.3268645,"ended_at":1795675708.3271513,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9sqqh9kxe5g0xpbg50e29-1-0-1','01m8b9sqqh9kxe5g0xpbg50e29',1,1,0,'ERROR',1.79567570919963598254e+09,'local','vm',1000,0,0,1.7956757091965825558e+09,1.79567570919671273235e+09,'{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675709.1965826,"ended_at":1795675709.1967127,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9sqqh9kxe5g0xpbg50e29-2-0-1','01m8b9sqqh9kxe5g0xpbg50e29',2,1,0,'ERROR',1.79567571021679806713e+09,'local','vm',1000,0,0,1.7956757102154352665e+09,1.79567571021588444704e+09,'{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675710.2154353,"ended_at":1795675710.2158844,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9sqqh9kxe5g0xpbg50e29-3-0-1','01m8b9sqqh9kxe5g0xpbg50e29',3,1,0,'ERROR',1.79567571223175239565e+09,'local','vm',1000,0,0,1.7956757122297422886e+09,1.79567571222987556458e+09,'{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675712.2297423,"ended_at":1795675712.2298756,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9sqqh9kxe5g0xpbg50e29-4-0-1','01m8b9sqqh9kxe5g0xpbg50e29',4,1,0,'ERROR',1.79567571625938487058e+09,'local','vm',1000,0,0,1.79567571625418758397e+09,1.79567571625433063508e+09,'{"containers":[{"exit_code":3,"reason":"Error"}],"conditions":[],"started_at":1795675716.2541876,"ended_at":1795675716.2543306,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t04153wzj044p748hp23-sweep-0-1-0-1','01m8b9t04153wzj044p748hp23-sweep-0',1,1,0,'TERMINATED',1.79567571788855171203e+09,'local','vm',1000,0,0,1.79567571788695764549e+09,1.79567571788797664643e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.8869576,"ended_at":1795675717.8879766,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t04153wzj044p748hp23-sweep-1-1-0-1','01m8b9t04153wzj044p748hp23-sweep-1',1,1,0,'TERMINATED',1.7956757179200050831e+09,'local','vm',1000,0,0,1.79567571791439390188e+09,1.79567571791884613039e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.914394,"ended_at":1795675717.9188461,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t04153wzj044p748hp23-sweep-2-1-0-1','01m8b9t04153wzj044p748hp23-sweep-2',1,1,0,'TERMINATED',1.79567571789588379858e+09,'local','vm',1000,0,0,1.79567571789474964144e+09,1.79567571789552378651e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675717.8947496,"ended_at":1795675717.8955238,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t1j2t4y7z155je8vajw5-1-0-1','01m8b9t1j2t4y7z155je8vajw5',1,1,0,'TERMINATED',1.79567571930042624468e+09,'local','vm',1000,0,0,1.79567571929087948798e+09,1.79567571929106855393e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675719.2908795,"ended_at":1795675719.2910686,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t1j2t4y7z155je8vajw5-1-1-1','01m8b9t1j2t4y7z155je8vajw5',1,1,1,'TERMINATED',1.7956757192872803211e+09,'local','vm',1000,0,0,1.79567571928358221049e+09,1.79567571928373360631e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675719.2835822,"ended_at":1795675719.2837336,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t35ztzcbka01zjn5jxth-1-0-1','01m8b9t35ztzcbka01zjn5jxth',1,1,0,'ERROR',1.79567572103818798062e+09,'local','vm',1000,0,0,1.79567572098807454105e+09,1.79567572099001431461e+09,'{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675720.9880745,"ended_at":1795675720.9900143,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t35zy58h8j155re6nr9s-1-0-1','01m8b9t35zy58h8j155re6nr9s',1,1,0,'ERROR',1.79567572099049186707e+09,'local','vm',1000,0,0,1.79567572098811912531e+09,1.79567572098917937282e+09,'{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675720.9881191,"ended_at":1795675720.9891794,"node":"vm","executor":"local"}','','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0010602474212646484,"failed_at":1795675720.9891794}','{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t35zy58h8j155re6nr9s-2-0-1','01m8b9t35zy58h8j155re6nr9s',2,1,0,'ERROR',1.79567572108248901365e+09,'local','vm',1000,0,0,1.79567572104679036137e+09,1.79567572104731225965e+09,'{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675721.0467904,"ended_at":1795675721.0473123,"node":"vm","executor":"local"}','','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.0005218982696533203,"failed_at":1795675721.0473123}','{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t35ztzcbka01zjn5jxth-2-0-1','01m8b9t35ztzcbka01zjn5jxth',2,1,0,'ERROR',1.79567572108248901365e+09,'local','vm',1000,0,0,1.79567572106882524492e+09,1.79567572107102847106e+09,'{"containers":[{"exit_code":1,"reason":"Error"}],"conditions":[],"started_at":1795675721.0688252,"ended_at":1795675721.0710285,"node":"vm","executor":"local"}','','{"cause":"kernel_nonzero_exit","conditions":["AppError"],"containers":[{"exit_code":1,"reason":"Error"}],"node":"vm","executor":"local","ran_s":0.002203226089477539,"failed_at":1795675721.0710285}','{"action":"Fail","code":"fail_policy_limit","reason":"Job has reached the specified backoff limit","delay_s":0.0,"limits":[{"name":"backoffLimit","used":0,"limit":0}]}',1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t38n795j15nk23ceh499-1-0-1','01m8b9t38n795j15nk23ceh499',1,1,0,'TERMINATED',1.79567572112042307848e+09,'local','vm',1000,0,0,1.79567572111044430728e+09,1.7956757211122586727e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675721.1104443,"ended_at":1795675721.1122587,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t38n795j15nk23ceh499-1-1-2','01m8b9t38n795j15nk23ceh499',1,2,1,'TERMINATED',1.79567572112042307848e+09,'local','vm',1000,0,0,1.79567572111152458196e+09,1.7956757211116502285e+09,'{"containers":[{"exit_code":0,"reason":"Completed"}],"conditions":[],"started_at":1795675721.1115246,"ended_at":1795675721.1116502,"node":"vm","executor":"local"}','',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "runs" VALUES('01m8b9t4ky24w5pxhpcb1tgm9x-1-0-1','01m8b9t4ky24w5pxhpcb1tgm9x',1,1,0,'RUNNING',1.79567572243244647977e+09,'local','vm',1000,0,0,1.79567572241128373144e+09,NULL,NULL,'',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE set_log (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	set_id TEXT NOT NULL, 
	at DOUBLE NOT NULL, 
	kind TEXT NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT fk_set_log_set_id FOREIGN KEY(set_id) REFERENCES workloads (id) ON DELETE CASCADE
);
INSERT INTO "set_log" VALUES(1,'01m8b9t35z3yza7b5fg4pnma73',1.79567572099049186707e+09,'decision','{"job":"train-w-1","attempt":[0,0],"action":"RestartJobSet","granted":true,"reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)","limits":[{"name":"maxRestarts","used":0,"limit":1}],"delay_s":0.0}');
INSERT INTO "set_log" VALUES(2,'01m8b9t35z3yza7b5fg4pnma73',1.79567572099049186707e+09,'event','{"type":"Warning","reason":"RestartJobSetFailurePolicyAction","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}');
INSERT INTO "set_log" VALUES(3,'01m8b9t35z3yza7b5fg4pnma73',1.79567572099049186707e+09,'event','{"type":"Warning","reason":"DefaultFailurePolicy","message":"applying RestartJobSet failure policy action (first failed job: train-w-1)"}');
INSERT INTO "set_log" VALUES(4,'01m8b9t35z3yza7b5fg4pnma73',1.79567572108248901365e+09,'decision','{"job":"train-w-0","attempt":[1,0],"action":"RestartJobSet","granted":false,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","limits":[{"name":"maxRestarts","used":1,"limit":1}],"delay_s":0.0}');
INSERT INTO "set_log" VALUES(5,'01m8b9t35z3yza7b5fg4pnma73',1.79567572108248901365e+09,'event','{"type":"Warning","reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)"}');
INSERT INTO "set_log" VALUES(6,'01m8b9t35z3yza7b5fg4pnma73',1.79567572108248901365e+09,'event','{"type":"Normal","reason":"JobSetFailed","message":"jobset failed"}');
CREATE TABLE settings (
	id INTEGER NOT NULL, 
	catalogue_version BIGINT NOT NULL, 
	body TEXT, paused TEXT, 
	CONSTRAINT pk_settings PRIMARY KEY (id), 
	CONSTRAINT ck_settings_one_row CHECK (id = 1)
);
INSERT INTO "settings" VALUES(1,5,NULL,NULL);
CREATE TABLE specs (
	digest BLOB NOT NULL, 
	body TEXT NOT NULL, 
	CONSTRAINT pk_specs PRIMARY KEY (digest)
);
INSERT INTO "specs" VALUES(X'662264831B1D494B9C1777108DB728DD516BBE4A9021FD5B','{"version":1,"spec":{"command":["true"],"name":"good","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'724608F5A2BA7880F7B440E9B15A9557ED8CCFC7FDA01748','{"version":1,"spec":{"command":["sh","-c","exit 3"],"group":"flows/7","labels":{"team":"nlp"},"name":"bad","notify":[{"on":["failure"],"to":"pager"}],"retry_policies":["infra"],"working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'5922CA2FC0FE4A3AAC063CF2FE5022ABE1D8107534E395FF','{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"0","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-0","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'7FFD4AEF171A936502BD2DE0BE74831C883A438DBB291F69','{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"1","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-1","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'9D7142C7BBA261594585BA24C54464C1A66583806F038667','{"version":1,"spec":{"command":["true"],"env":{"HOLDFAST_ARRAY_INDEX":"2","HOLDFAST_ARRAY_NAME":"sweep","HOLDFAST_ARRAY_SIZE":"3"},"name":"sweep-2","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'48E715881D00576571A26D1F0D9E013B2E344A5EE00961D6','{"version":1,"spec":{"command":["true"],"gang":2,"name":"pair","queue":"gpu","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'457158CF6DAE0FE01B4359A881D9B58A08070AFC1178CCDA','{"version":1,"spec":{"command":["false"],"grace_s":30.0,"labels":{"jobset.sigs.k8s.io/jobset-name":"train","jobset.sigs.k8s.io/replicatedjob-name":"w"},"name":"train-w"}}');
INSERT INTO "specs" VALUES(X'2772D757CCE8D371345ABCE227E4B6E1BB4C54C291434C5A','{"version":1,"spec":{"command":["true"],"grace_s":30.0,"kube":{"program":{"command":["true"],"container":"c","image":"none"},"raw":{"backoffLimit":1,"completions":2,"parallelism":2,"template":{"spec":{"containers":[{"command":["true"],"image":"none","name":"c"}],"restartPolicy":"Never"}}},"spec":{"backoff_limit":1,"completions":2,"parallelism":2}},"name":"pods"}}');
INSERT INTO "specs" VALUES(X'D532DDB49776BC4E5D50DA48938C9EC367FF48768404028B','{"version":1,"spec":{"command":["sleep","600"],"name":"long","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'E6C9E3E93D567D6BF8EC3B2E6E70E48CF9B6BD521B93A034','{"version":1,"spec":{"after":[{"id":"01m8b9t4ky24w5pxhpcb1tgm9x","name":"long","target":"job"}],"command":["true"],"name":"after","working_dir":"/srv/holdfast"}}');
INSERT INTO "specs" VALUES(X'2979F1BB957108472285ACB41E4EF7347967113D3B814CE6','{"version":1,"spec":{"after":[{"condition":"ended","id":"01m8b9t4ky24w5pxhpcb1tgm9x","name":"long","target":"job"}],"command":["true"],"name":"held","working_dir":"/srv/holdfast"}}');
CREATE TABLE workloads (
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	owner TEXT, 
	name TEXT, 
	generation INTEGER NOT NULL, 
	spec TEXT NOT NULL, 
	manifest TEXT NOT NULL, 
	deleting BOOLEAN NOT NULL, 
	expires_at DOUBLE, 
	version INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	updated_at DOUBLE NOT NULL, 
	state TEXT NOT NULL, submitted_by TEXT DEFAULT '' NOT NULL, submitter_uid BIGINT, group_name TEXT, queue TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_workloads PRIMARY KEY (id), 
	CONSTRAINT ck_workloads_generation CHECK (generation >= 1), 
	CONSTRAINT uq_workloads_kind_name UNIQUE (kind, name)
);
INSERT INTO "workloads" VALUES('01m8b9t04153wzj044p748hp23','array',NULL,'sweep',1,'{"version":1,"spec":{"indexes":[{"first":0,"last":2}],"job":{"command":["true"],"name":"sweep","queue":"gpu","working_dir":"/srv/holdfast"}}}','{"apiVersion": "holdfast.dev/v1", "kind": "Job", "metadata": {"name": "sweep"}, "spec": {"array": {"indices": "0-2"}, "command": ["true"], "queue": "gpu", "workingDir": "/srv/holdfast"}}',0,NULL,1,1.79567571776180529593e+09,1.7956757179200050831e+09,'{"version":1,"state":{"made":3,"succeeded":3,"stopping":"Succeeded","status":"Succeeded","reason":"3 of 3 tasks succeeded","ended_at":1795675717.920005}}','root',0,NULL,'gpu');
INSERT INTO "workloads" VALUES('01m8b9t35z3yza7b5fg4pnma73','jobset',NULL,'train',1,'{"version":1,"spec":{"failure":{"max_restarts":1},"name":"train","replicated_jobs":[{"job":{"backoff_limit":0,"mode":"Indexed"},"name":"w","program":{"command":["false"],"container":"c","image":"none"},"replicas":2,"template":{"spec":{"backoffLimit":0,"completions":1,"parallelism":1,"template":{"spec":{"containers":[{"command":["false"],"image":"none","name":"c"}],"restartPolicy":"Never"}}}}}]}}','{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"train"},"spec":{"failurePolicy":{"maxRestarts":1},"replicatedJobs":[{"name":"w","replicas":2,"template":{"spec":{"backoffLimit":0,"completions":1,"parallelism":1,"template":{"spec":{"containers":[{"command":["false"],"image":"none","name":"c"}],"restartPolicy":"Never"}}}}}]}}',0,NULL,1,1.79567572089540767668e+09,1.79567572108248901365e+09,'{"version":1,"state":{"restarts":1,"restarts_counted":1,"rule_restarts":{"default":1},"blamed":{"w":1},"terminal":"Failed","conditions":[{"type":"RestartingJobSet","status":false,"reason":"JobSetFailed","message":"jobset failed","since":1795675721.082489},{"type":"Failed","status":true,"reason":"ReachedMaxRestarts","message":"jobset failed due to reaching max number of restarts (first failed job: train-w-0)","since":1795675721.082489}],"groups":[{"name":"w","failed":2}],"started_at":1795675720.9379146,"ended_at":1795675721.082489},"lenient":true}','root',0,NULL,'default');
INSERT INTO "workloads" VALUES('01m8b9t35ztzcbka01zjn5jxth','kubejob','01m8b9t35z3yza7b5fg4pnma73',NULL,1,'','',0,NULL,1,1.79567572089540767668e+09,0.0,'{"version":1,"restart":1,"parallelism":1,"completions":1,"state":{"started_at":1795675721.038188,"failed":1,"counted":["train-w-0-0-1"],"conditions":[{"type":"FailureTarget","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489},{"type":"Failed","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489}],"backoff":{"failures":1,"last_failure_at":1795675721.0710285},"finished_at":1795675721.082489}}','',NULL,NULL,'');
INSERT INTO "workloads" VALUES('01m8b9t35zy58h8j155re6nr9s','kubejob','01m8b9t35z3yza7b5fg4pnma73',NULL,1,'','',0,NULL,1,1.79567572089540767668e+09,0.0,'{"version":1,"restart":1,"parallelism":1,"completions":1,"state":{"started_at":1795675720.9904919,"failed":1,"counted":["train-w-1-0-1"],"conditions":[{"type":"FailureTarget","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489},{"type":"Failed","status":true,"reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","since":1795675721.082489}],"backoff":{"failures":1,"last_failure_at":1795675721.0473123},"finished_at":1795675721.082489}}','',NULL,NULL,'');
INSERT INTO "workloads" VALUES('01m8b9t38n795j15nk23ceh499','kubejob',NULL,NULL,1,'','',0,NULL,1,1.79567572098170161239e+09,0.0,'{"version":1,"state":{"started_at":1795675721.0234852,"succeeded":2,"counted":["pods-1-2","pods-0-1"],"conditions":[{"type":"SuccessCriteriaMet","status":true,"reason":"CompletionsReached","message":"Reached expected number of succeeded pods","since":1795675721.120423},{"type":"Complete","status":true,"reason":"CompletionsReached","message":"Reached expected number of succeeded pods","since":1795675721.120423}],"finished_at":1795675721.120423}}','',NULL,NULL,'');
CREATE INDEX ix_jobs_name ON jobs (name);
CREATE INDEX ix_jobs_spec ON jobs (spec);
CREATE INDEX ix_jobs_state_seq ON jobs (state, seq);
CREATE INDEX ix_job_labels_key_value ON job_labels ("key", value);
CREATE INDEX ix_runs_job_id ON runs (job_id);
CREATE INDEX ix_jobs_of_sets ON jobs (set_id, seq) WHERE set_id IS NOT NULL;
CREATE INDEX ix_workloads_expiring ON workloads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ix_set_log_set_id_seq ON set_log (set_id, seq);
CREATE INDEX ix_attempts_active ON attempts (job_id) WHERE status <> 'CANCELLED' AND status <> 'ERROR' AND status <> 'TERMINATED';
CREATE INDEX ix_runs_active ON runs (job_id) WHERE status <> 'CANCELLED' AND status <> 'ERROR' AND status <> 'TERMINATED';
CREATE INDEX ix_notifications_about ON notifications (about);
CREATE INDEX ix_notifications_waiting ON notifications (next_at) WHERE state = 'Waiting';
CREATE INDEX ix_notifications_settled ON notifications (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX ix_reruns_array ON reruns (array);
CREATE INDEX ix_jobs_submitted_by_seq ON jobs (submitted_by, seq);
CREATE INDEX ix_jobs_group_name_seq ON jobs (group_name, seq) WHERE group_name IS NOT NULL;
CREATE INDEX ix_events_group_name_seq ON events (group_name, seq) WHERE group_name IS NOT NULL;
CREATE INDEX ix_intake_queue_submitted_by ON intake (queue, submitted_by);
CREATE INDEX ix_jobs_waiting ON jobs (queue, submitted_by) WHERE state <> 'Cancelled' AND state <> 'Failed' AND state <> 'Running' AND state <> 'Succeeded';
CREATE INDEX ix_names_job_id ON names (job_id);
CREATE INDEX ix_endpoints_job_id ON endpoints (job_id);
CREATE INDEX ix_endpoints_system_name ON endpoints (system, name);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('set_log',6);
INSERT INTO "sqlite_sequence" VALUES('events',93);
INSERT INTO "sqlite_sequence" VALUES('audit',15);
INSERT INTO "sqlite_sequence" VALUES('jobs',12);
INSERT INTO "sqlite_sequence" VALUES('requests',10);
INSERT INTO "sqlite_sequence" VALUES('notifications',1);
