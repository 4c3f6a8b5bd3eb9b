package cluster
import ("testing";"time";"os";"fmt")
func TestTiming(t *testing.T){
 a:=time.Now(); c,err:=Start(t.Context(),Options{Nodes:3,AuditLog:true}); if err!=nil{t.Fatal(err)}
 fmt.Println("started",time.Since(a), time.Now().UTC())
 os.WriteFile("/tmp/w/d.yaml",[]byte(deployment),0644)
 fmt.Println(c.Kubectl(t.Context(),"apply","-f","/tmp/w/d.yaml"))
 fmt.Println(c.Kubectl(t.Context(),"rollout","status","deployment/web"))
 fmt.Println("rolled",time.Since(a), time.Now().UTC())
 for _,f:=range []string{"kwok","kube-apiserver","kube-controller-manager","kube-scheduler"}{ x,_:=os.ReadFile(c.Dir+"/"+f+".log"); os.WriteFile("/tmp/w/"+f+".log",x,0644)}
 x,_:=os.ReadFile(c.AuditLog); os.WriteFile("/tmp/w/audit.log",x,0644)
 c.Stop()
}
